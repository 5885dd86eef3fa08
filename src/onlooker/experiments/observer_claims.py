"""Claims 1 to 5: the burn-in curve, naive imitation, the oracle, the rule N^0.9, and the rate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from onlooker.base.types import Matrix
from onlooker.experiments import claim as judges
from onlooker.experiments.claim import NEEDED, Claim, known, too_few, whole
from onlooker.experiments.measurements import BEST_ALPHA, METRICS, ORACLE, Measurements, Setting

_SHORT = {"predictive_regret": "regret", "direction_error": "error"}

_NAMES = {
    ORACLE: "the oracle (best alpha of each seed)",
    BEST_ALPHA: "the best single alpha for all seeds",
    "rule": "the rule N^0.9",
}


def observer_claims(table: Measurements) -> tuple[Claim, ...]:
    """Judge the claims that the table has the rows for: each claim, then its parts."""
    found = list(_u_shape(table))
    for claim in (_naive, _oracle, _rule_spread, _rule_beats_naive, _rule_nears_oracle, _rate):
        for learner in dict.fromkeys(setting.learner for setting in table.settings):
            found += claim(table, [setting for setting in table.settings if setting.learner == learner])
    return tuple(found)


def _u_shape(table: Measurements) -> Iterator[Claim]:
    key, paper = "1-u-shape", "U-shaped in every panel"
    parts = []
    for setting, metric in _panels(table.settings):
        last = table.horizons(setting)[-1]
        curve = table.curve(setting, last, metric)
        if curve is None or len(curve.alphas) < 3:
            continue
        ends = f"{curve.alphas[0]:g} and at {curve.alphas[-1]:g}"
        text = f"{setting}: {METRICS[metric]} at N = {last:,} is lower at the best alpha than at alpha = {ends}"
        judge = partial(judges.dips_inside, alphas=curve.alphas)
        parts.append(_part(f"{key}/{setting.key}/{_SHORT[metric]}", text, paper, curve.values, judge))
    text = (
        "Both metrics are U-shaped in alpha: at the best single alpha they lie below both ends (paired over seeds, "
        "one-sided 5%, corrected for choosing the best alpha)"
    )
    return _with_parts(key, text, paper, parts, measure="Best alpha / alpha = 0", panels="panels")


def _naive(table: Measurements, settings: Sequence[Setting]) -> Iterator[Claim]:
    key, paper = f"2-naive-{settings[0].learner}", "worse at every horizon"
    parts = []
    for setting, metric in _panels(settings):
        horizons = [N for N in table.horizons(setting) if {"naive", "learner"} <= set(table.methods(setting, N))]
        places = [(N, method) for N in horizons for method in ("naive", "learner")]
        text = f"{setting}: {METRICS[metric]} of naive / learner above 1 at every N; the lowest of them"
        judge = partial(judges.is_always_worse, horizons=horizons)
        parts.append(_part(_key(key, setting, metric), text, paper, table.paired(setting, metric, *places), judge))
    text = f"{settings[0].learner}: naive imitation is worse than the learner at every horizon, by both metrics"
    return _with_parts(key, text, paper, parts, measure="Lowest naive / learner")


def _oracle(table: Measurements, settings: Sequence[Setting]) -> Iterator[Claim]:
    learner = settings[0].learner
    close = f"is within {judges.CLOSE:.0%} of"
    for method in (ORACLE, BEST_ALPHA):
        for short, verb, paper, judge in (
            ("beats", "beats", "beats the learner (caption)", judges.beats),
            ("close", close, "similar to the learner's", judges.is_close),
        ):
            key = f"3-{_dashed(method)}-{short}-{learner}"
            claim = f"{_NAMES[method]} {verb} the learner"
            parts = _at_the_end(table, settings, key, f"{claim}; ratio of the two", paper, (method, "learner"), judge)
            text = f"{learner}: {claim} at the longest horizon, by both metrics"
            yield from _with_parts(key, text, paper, parts, measure="Observer / learner")


def _rule_spread(table: Measurements, settings: Sequence[Setting]) -> Iterator[Claim]:
    learner, paper = settings[0].learner, "high variance at small N"
    key = f"4-rule-spread-{learner}"
    parts = []
    for metric, name in METRICS.items():
        at = [(setting, table.horizons(setting)[0]) for setting in settings]
        pairs = [table.paired(setting, metric, (N, "rule"), (N, "naive")) for setting, N in at]
        sizes = [len(values) for values in pairs if len(values)]
        text = f"{learner}: relative spread over seeds of the {name}, rule / naive, above 1 at the shortest horizon"
        judge = partial(judges.spreads_more, sizes=sizes)
        seeds = min(sizes, default=0)
        parts.append(_part(f"{key}/{_SHORT[metric]}", text, paper, np.concatenate(pairs), judge, seeds=seeds))
    text = f"{learner}: at the shortest horizon the rule N^0.9 varies more over seeds than naive, relative to its mean"
    return _with_parts(key, text, paper, parts, measure="Spread of rule / naive", panels="metrics")


def _rule_beats_naive(table: Measurements, settings: Sequence[Setting]) -> Iterator[Claim]:
    key, paper = f"4-rule-beats-naive-{settings[0].learner}", "significantly better at large N"
    claim = "the rule N^0.9 beats naive"
    parts = _at_the_end(table, settings, key, f"{claim}; ratio of the two", paper, ("rule", "naive"), judges.beats)
    text = f"{settings[0].learner}: {claim} at the longest horizon, by both metrics"
    return _with_parts(key, text, paper, parts, measure="Rule / naive")


def _rule_nears_oracle(table: Measurements, settings: Sequence[Setting]) -> Iterator[Claim]:
    key, paper = f"4-rule-nears-oracle-{settings[0].learner}", "approaches the oracle as N grows"
    parts = []
    for setting, metric in _panels(settings):
        first, last = table.horizons(setting)[0], table.horizons(setting)[-1]
        if first == last:
            continue
        places = [(N, method) for N in (first, last) for method in ("rule", ORACLE)]
        text = f"{setting}: {METRICS[metric]} of rule / oracle at N = {last:,}, over the same at N = {first:,}, below 1"
        judge = partial(judges.comes_closer, horizons=(first, last))
        parts.append(_part(_key(key, setting, metric), text, paper, table.paired(setting, metric, *places), judge))
    text = f"{settings[0].learner}: the rule N^0.9 comes closer to {_NAMES[ORACLE]} as N grows, by both metrics"
    return _with_parts(key, text, paper, parts, measure="Rule / oracle, last horizon over first")


def _rate(table: Measurements, settings: Sequence[Setting]) -> Iterator[Claim]:
    learner, paper = settings[0].learner, "N^-1/2 up to logarithms"
    for method in (BEST_ALPHA, ORACLE, "rule"):
        key = f"5-rate-{_dashed(method)}-{learner}"
        parts = []
        for setting in settings:
            horizons = table.horizons(setting)
            if len(horizons) < 2:
                continue
            values = table.paired(setting, "predictive_regret", *((N, method) for N in horizons))
            text = f"{setting}: log-log slope in N of the predictive regret of {_NAMES[method]}, below -1/2"
            judge = partial(judges.falls_fast, horizons=horizons)
            parts.append(_part(f"{key}/d{setting.d}-K{setting.K}", text, paper, values, judge))
        text = f"{learner}: the predictive regret of {_NAMES[method]} falls like N^-1/2 or faster"
        yield from _with_parts(key, text, paper, parts, measure="Slope")


Judge = Callable[[Matrix], judges.Judgement]


def _at_the_end(
    table: Measurements,
    settings: Sequence[Setting],
    key: str,
    claim: str,
    paper: str,
    methods: tuple[str, str],
    judge: Judge,
) -> list[Claim | None]:
    """Compare two methods at the longest horizon, panel by panel."""
    parts = []
    for setting, metric in _panels(settings):
        N = table.horizons(setting)[-1]
        values = table.paired(setting, metric, *((N, method) for method in methods))
        text = f"{setting}: {METRICS[metric]} at N = {N:,}: {claim}"
        parts.append(_part(_key(key, setting, metric), text, paper, values, judge))
    return parts


def _part(key: str, text: str, paper: str, values: Matrix, judge: Judge, seeds: int | None = None) -> Claim | None:
    """Judge one panel, if it was measured; seeds too few or values without a logarithm decide nothing."""
    if not values.size:
        return None
    seeds = len(values) if seeds is None else seeds
    reason = too_few(seeds) if seeds < NEEDED else "zero has no logarithm" if (values <= 0).any() else ""
    if reason:
        return Claim(key=key, text=text, paper=paper, ours=None, verdict="inconclusive", detail=reason)
    found, verdict, detail = judge(values)
    return Claim(
        key=key,
        text=text,
        paper=paper,
        ours=known(found.value),
        low=known(found.low),
        high=known(found.high),
        verdict=verdict,
        detail=f"{seeds} seeds; {detail}",
    )


def _with_parts(
    key: str, text: str, paper: str, parts: Sequence[Claim | None], *, measure: str, panels: str = "settings"
) -> Iterator[Claim]:
    judged = [part for part in parts if part is not None]
    if judged:
        yield whole(key, text, paper, judged, measure=measure, panels=panels)
        yield from judged


def _panels(settings: Sequence[Setting]) -> list[tuple[Setting, str]]:
    return [(setting, metric) for setting in settings for metric in METRICS]


def _key(key: str, setting: Setting, metric: str) -> str:
    return f"{key}/d{setting.d}-K{setting.K}/{_SHORT[metric]}"


def _dashed(method: str) -> str:
    return method.replace(" ", "-")
