"""What can go wrong, by name: errors that refuse, warnings that teach."""


class OnlookerError(Exception):
    """Base of every error that onlooker raises on purpose."""


class InputError(OnlookerError, ValueError):
    """The input cannot be used; the message says what, where and what to do."""


class NotFittedError(OnlookerError, ValueError, AttributeError):
    """A learned attribute was asked for before `fit`."""


class OnlookerWarning(UserWarning):
    """Base of every warning that onlooker gives: the answer is usable, but read this first."""


class ColumnsLeftOutWarning(OnlookerWarning):
    """Some columns of a table are text, so they were not taken for features."""


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
