"""Errors and warnings: an error stops the work, a warning comes with an answer that can be used."""


class OnlookerError(Exception):
    """Base class of all errors that onlooker raises on purpose."""


class InputError(OnlookerError, ValueError):
    """The input cannot be used. The message says what is wrong, where, and what to do."""


class ClusterError(OnlookerError):
    """A cluster cannot be reached or has stopped working. The message says what to do."""


class NotFittedError(OnlookerError, ValueError, AttributeError):
    """A fitted attribute was used before `fit` was called."""


class OnlookerWarning(UserWarning):
    """Base class of all warnings. The result can be used, with the limit that the message describes."""


class ColumnsLeftOutWarning(OnlookerWarning):
    """Some columns are not used as features: text with a single value or too many values, or an unsupported type."""


class TimesOutOfOrderWarning(OnlookerWarning):
    """A column that looks like a time is not sorted, and no sorting was requested. Use `order_by` to sort by it."""


class RoundsOutOfOrderWarning(OnlookerWarning):
    """The round numbers are consecutive, but the rows of the table are not in that order."""


class OnlyOnPicksWarning(OnlookerWarning):
    """A feature is non-zero in picked rows only. It is probably an outcome of the pick and must not be a feature."""


class MixedFeatureWarning(OnlookerWarning):
    """A feature mixes numbers and text, so it is encoded as a number and a category."""


class UnseenCategoryWarning(OnlookerWarning):
    """A category has a level that its encoding does not know. It is scored as the reference level."""


class SharedFeaturesWarning(OnlookerWarning):
    """Features shared by all arms of a round cannot explain a choice by themselves, so they were left out."""


class SkippedLinesWarning(OnlookerWarning):
    """Some lines of a file contain no usable round. They were counted and left out."""


class RepeatedRoundsWarning(OnlookerWarning):
    """All rounds of a log were followed before and are skipped, or it is not known whether they were."""


class FittedRoundsWarning(OnlookerWarning):
    """`predict_proba` was given rounds that the observer was fitted on. `propensities` says how they were picked."""


class LowOverlapWarning(OnlookerWarning):
    """Hardly any round shows what other policies would have picked, as when the learner looks deterministic."""


class OneArmRoundsWarning(OnlookerWarning):
    """Some rounds offer a single arm. They involve no choice and carry no information about preferences."""


class TooFewRoundsWarning(OnlookerWarning):
    """There are too few rounds with a choice for the number of features. Regularisation decides much of the result."""


class UncomparedArmsWarning(OnlookerWarning):
    """Some arms were never picked, or never offered beside others: little is known of their weights."""


class NoIntervalsWarning(OnlookerWarning):
    """There are too many weights for intervals: they have no standard errors."""


class NoPreferenceWarning(OnlookerWarning):
    """Uniformly random picks explain the data as well as the fitted policy. Do not read its weights as preferences."""


class SeparableDataWarning(OnlookerWarning):
    """The picks are separable: one theta explains them without error, so the data do not bound its length."""


class CollinearFeaturesWarning(OnlookerWarning):
    """Some features are not identifiable separately (collinear within the rounds), or never vary within a round."""


class CoarseSetsWarning(OnlookerWarning):
    """Picks are known only to sets of arms that are too coarse to identify some weights."""


class PicksDrawnWarning(OnlookerWarning):
    """Picks are known only to sets of arms, so they were drawn within these, several times."""


class MissingValuesWarning(OnlookerWarning):
    """Rounds in which a feature is missing were left out."""


class PenaltyDominatesWarning(OnlookerWarning):
    """Regularisation determines some weights as much as the picks do, often those of features on a tiny scale."""


class NoFamilyFitsWarning(OnlookerWarning):
    """None of the known exploration families predicts the picks, so the tracked estimate may be misleading."""


class ConvergenceWarning(OnlookerWarning):
    """The solver stopped before it converged. Bring the features to similar scales, or use a larger `l2`."""
