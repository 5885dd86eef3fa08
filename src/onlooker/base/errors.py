"""What can go wrong, by name: errors that refuse, warnings that teach."""


class OnlookerError(Exception):
    """Base of every error that onlooker raises on purpose."""


class InputError(OnlookerError, ValueError):
    """The input cannot be used; the message says what, where and what to do."""


class ClusterError(OnlookerError):
    """A cluster cannot be reached, or cannot go on; the message says what to do."""


class NotFittedError(OnlookerError, ValueError, AttributeError):
    """A learned attribute was asked for before `fit`."""


class OnlookerWarning(UserWarning):
    """Base of every warning that onlooker gives: the answer is usable, but read this first."""


class ColumnsLeftOutWarning(OnlookerWarning):
    """Some columns of a table are text of many values, of one value or no text at all, so they are no features."""


class TimesOutOfOrderWarning(OnlookerWarning):
    """A column that looks like a time is out of order, and nobody asked to sort by it."""


class RoundsOutOfOrderWarning(OnlookerWarning):
    """Rounds are numbered one after the other, but not in the order in which they stand in the table."""


class OnlyOnPicksWarning(OnlookerWarning):
    """A feature differs from 0 in picked rows only: what came of a pick would foretell it without fail."""


class MixedFeatureWarning(OnlookerWarning):
    """A feature is a number in some places and text in others, so it became a number and a category besides."""


class UnseenCategoryWarning(OnlookerWarning):
    """A category has a level that was not there when its encoding was made: it is scored as the reference level."""


class SharedFeaturesWarning(OnlookerWarning):
    """Features that all arms of a round share say nothing of the choice by themselves, so they were left out."""


class SkippedLinesWarning(OnlookerWarning):
    """Some lines of a file hold no round that can be used: they were counted and left out."""


class RepeatedRoundsWarning(OnlookerWarning):
    """No round of a log is new, so that all are skipped; or it is not known whether they are."""


class OneArmRoundsWarning(OnlookerWarning):
    """Some rounds offer a single arm: nothing was chosen there, so they say nothing."""


class TooFewRoundsWarning(OnlookerWarning):
    """There are fewer informative rounds than features: the penalty decides much of the answer."""


class NoPreferenceWarning(OnlookerWarning):
    """The picks are explained as well by choosing uniformly at random."""


class SeparableDataWarning(OnlookerWarning):
    """One theta explains picks without error, so the data do not bound its length."""


class CollinearFeaturesWarning(OnlookerWarning):
    """Some features cannot be told apart within the rounds, or never vary within one."""


class PenaltyDominatesWarning(OnlookerWarning):
    """The penalty, not the data, decides some coefficients: often a feature on a tiny scale."""


class NoFamilyFitsWarning(OnlookerWarning):
    """No way to explore that is known predicts the picks: the tracked estimate may mislead."""


class ConvergenceWarning(OnlookerWarning):
    """The solver stopped before the gradient was small."""
