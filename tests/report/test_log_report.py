"""A log as a page: what it says, that it says it safely, and nothing that it should not say."""

import csv
import hashlib
import re
import warnings
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from hostile import ARM, ENDING, IMAGE, LEVELS, ROUND, SCRIPT, write_hostile
from onlooker import (
    BanditLog,
    InputError,
    OnlookerWarning,
    SuffixImitation,
    diagnose,
    read_log,
    report_page,
    write_report,
)
from onlooker.formats.opening import open_log
from onlooker.imitation.burn_in import HeldOut
from onlooker.report.log_analysis import DRAWN, analyse
from onlooker.report.log_page import page_of
from onlooker.report.page import Input, Source, render


class Elements(HTMLParser):
    """Tags, attributes and all text of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def log():
    """Two or more arms, some rounds of one; 300 picks at random, then a noisy taste."""
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 6, size=1500)
    X = rng.normal(size=(counts.sum(), 3))
    scores = X @ [2.0, -1.0, 0.5] + 0.5 * rng.gumbel(size=len(X))
    scores[: counts[:300].sum()] = rng.normal(size=counts[:300].sum())
    offsets = np.concatenate([[0], np.cumsum(counts)])
    chosen = [int(scores[a:b].argmax()) for a, b in pairwise(offsets)]
    return BanditLog(X, offsets, chosen, feature_names=["price", "weight", "colour"])


@pytest.fixture(scope="module")
def found(log):
    return analyse(log)


@pytest.fixture(scope="module")
def page(found):
    return page_of({"": found}, Source(name="visits.csv"))


@pytest.fixture(scope="module")
def html(page):
    return render(page)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    path, columns = write_hostile(tmp_path_factory.mktemp("hostile"))
    log = read_log(path, **columns)
    source = Source(
        name=path.name,
        inputs=(Input.of(path),),
        assumed=(f"features {SCRIPT}",),
        warnings=(IMAGE,),
        command=f"onlooker report {path.name}",
        saving=f"$ onlooker fit {path.name} --feature {ENDING}",
    )
    return path, log, render(report_page(log, source))


def automatic(log):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnlookerWarning)
        return SuffixImitation(burn_in="auto").fit(log)


def test_the_verdict_comes_first_and_the_sections_follow(page, html, log):
    assert page.lead.startswith(diagnose(log).sentence)
    assert page.title == "What the learner behind visits.csv values"
    assert [section.title for section in page.sections] == [
        "What the learner values",
        "Whether and since when it is stable",
        "Agreement over time",
        "How much of the beginning to discard",
        "Where its weights went",
        "How to use the policy",
        "Where this comes from",
        "Terms",
    ]
    assert html.index("stable since about round") < html.index("<section")
    assert html.count("<svg") == html.count("<figcaption>") == html.count("<summary>The numbers</summary>") == 7


def test_the_fit_is_that_of_the_automatic_burn_in(found, log):
    told = automatic(log).summary()
    assert found.summary == told
    assert found.curve.start == HeldOut().start(log) == told.burn_in


def test_weights_are_sorted_by_their_effect_in_the_chart_and_in_the_table(page, found):
    values = page.sections[0]
    (chart,) = values.charts
    sizes = np.abs(chart.estimates)
    assert (sizes[:-1] >= sizes[1:]).all()
    known = {c.name: (c, d) for c, d in zip(found.summary.coefficients, found.differences.tolist(), strict=True)}
    for name, estimate, low, high in chart.rows()[1]:
        c, difference = known[name]
        assert (estimate, low, high) == (c.estimate * difference, c.low * difference, c.high * difference)
    assert [row[0] for row in values.table.rows] == list(chart.names)
    assert [row[2] for row in values.table.rows] == [known[name][0].estimate for name in chart.names]


def test_the_scale_of_a_feature_does_not_change_its_place():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3, 3))
    chosen = (X @ [0.5, 3.0, 1.0] + rng.gumbel(size=(400, 3))).argmax(axis=1)
    for scale in ([1, 1, 1], [0.01, 100, 1]):
        log = BanditLog.from_dense(X * scale, chosen)
        assert report_page(log).sections[0].charts[0].names == ("x1", "x2", "x0")


def test_weights_of_every_arm_are_a_coloured_table():
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(400, 2))
    arms = np.array(["tea", "milk", "water"])[
        (contexts @ rng.normal(size=(2, 3)) + rng.gumbel(size=(400, 3))).argmax(1)
    ]
    log = BanditLog.from_contexts(contexts, arms, feature_names=["age", "hour"])
    found = analyse(log)
    page = page_of({"": found}, Source())
    heat = page.sections[0].charts[0]
    assert (heat.names, heat.columns) == (("milk", "tea", "water"), ("age", "hour"))
    np.testing.assert_array_equal(heat.values.ravel(), found.policy.theta)
    assert "<image" not in render(page)


def test_many_features_are_all_in_the_table_but_not_all_in_the_chart():
    X = np.random.default_rng(0).normal(size=(300, 3, DRAWN + 5))
    log = BanditLog.from_dense(X, chosen=(X[:, :, 0]).argmax(axis=1))
    values = report_page(log).sections[0]
    assert len(values.charts[0].names) == DRAWN
    assert len(values.table.rows) == DRAWN + 5
    assert values.table.rows[0][0] == "x0"
    assert values.folded
    assert f"the {DRAWN} largest of {DRAWN + 5} effects" in values.text


def test_agreement_over_time_is_the_policys_own(found, log):
    hits = found.policy.choose(log) == log.chosen
    choices = log.n_arms > 1
    assert found.agreement[0].start == np.flatnonzero(choices)[0]
    for part in found.agreement:
        inside = np.arange(part.start, part.stop)[choices[part.start : part.stop]]
        assert part.agreement.value == pytest.approx(hits[inside].mean(), abs=1e-12)
        assert part.chance == pytest.approx((1 / log.n_arms[inside]).mean(), abs=1e-12)
        assert part.agreement.low <= part.agreement.value <= part.agreement.high
    assert sum(choices[part.start : part.stop].sum() for part in found.agreement) == choices.sum()


def test_the_burn_in_that_was_chosen_is_marked_on_the_curve(page, found):
    (chart,) = page.sections[3].charts
    assert [(mark.label, mark.x) for mark in chart.marks] == [("chosen", found.summary.burn_in)]
    assert chart.series[0].y.tolist() == found.curve.losses.tolist()
    assert chart.levels[0].y == found.curve.losses.min()


def test_warnings_are_near_the_top():
    X = np.random.default_rng(0).normal(size=(200, 3, 2))
    both = np.concatenate([X, X[:, :, :1]], axis=2)
    page = report_page(BanditLog.from_dense(both, chosen=X[:, :, 0].argmax(axis=1)))
    text = Elements(render(page)).text
    assert any("not identifiable separately" in warning for warning in page.warnings)
    for warning in page.warnings:
        assert text.index(warning) < text.index("What the learner values")


def test_weights_of_a_learner_that_changed_are_called_mixed():
    X = np.random.default_rng(0).normal(size=(2000, 5, 3))
    scores = np.where(np.arange(2000)[:, None] < 1000, X[:, :, 0], X[:, :, 1])
    noisy = scores + 0.5 * np.random.default_rng(1).gumbel(size=scores.shape)
    found = analyse(BanditLog.from_dense(X, chosen=noisy.argmax(axis=1)))
    assert found.diagnosis.verdict == "changed"
    mixed = [text for text in found.warnings if text.startswith("the weights mix two policies")]
    assert len(mixed) == (found.summary.burn_in < found.diagnosis.changed.round)


@pytest.mark.parametrize("n_rounds", [2, 30])
def test_a_short_log_still_has_a_page(n_rounds):
    X = np.random.default_rng(0).normal(size=(n_rounds, 3, 2))
    page = report_page(BanditLog.from_dense(X, chosen=X[:, :, 0].argmax(axis=1)))
    assert page.lead.startswith("Not enough evidence")
    assert render(page).count("<svg") >= 2


def test_a_log_that_ends_in_arms_alike_has_a_page():
    X = np.random.default_rng(0).normal(size=(2000, 5, 3))
    X[1500:] = 0
    page = report_page(BanditLog.from_dense(X, chosen=(X @ [1.0, 2.0, -1.0]).argmax(axis=1)))
    assert page.lead.startswith("What it values is stable from the start")
    assert any("arms with the same features" in warning for warning in page.warnings)
    assert "inf" not in re.findall(r"[a-z]+", Elements(render(page)).text.lower())


def test_p_values_are_given_as_bounds_and_the_two_rounds_apart(page):
    table = {row[0]: row[1] for row in page.sections[1].table.rows}
    assert table["picks are uniform throughout"] == "< 1e-100"
    assert table["the final policy fits early rounds as well as late ones"] == "<= 0.001"
    settled, tracked = ({mark.label for chart in page.sections[i].charts for mark in chart.marks} for i in (1, 4))
    assert settled == {"stable"}
    assert tracked <= {"estimate stable"}
    assert "is stable" in page.sections[1].text


def test_a_log_without_a_choice_is_refused():
    with pytest.raises(InputError, match="choice"):
        report_page(BanditLog.from_dense(np.zeros((5, 1, 2)), chosen=np.zeros(5, dtype=int)))


def test_the_same_log_gives_the_same_bytes(log, html, tmp_path):
    write_report(report_page(log, Source(name="visits.csv")), tmp_path / "again.html")
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == html


def test_names_are_shown_and_never_obeyed(hostile):
    path, _, html = hostile
    page = Elements(html)
    assert not {"script", "img", "iframe", "b", "link", "form", "object", "embed"} & set(page.tags)
    assert page.tags.count("style") == page.tags.count("title") == 1
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in {"style", "src", "srcdoc"}]
    assert not [value for name, value in page.attributes if name == "href" and not value.startswith("#")]
    for text in (SCRIPT, IMAGE, ENDING, path.name, LEVELS[2]):
        assert text in page.text


def test_no_row_of_features_and_no_id_is_on_the_page(hostile):
    path, log, html = hostile
    page = Elements(html)
    with open(path, newline="") as file:
        rows = [tuple(map(float, row[4:6])) for row in list(csv.reader(file))[1:]]
    assert len({cell for row in rows for cell in row}) == 2 * 4 * log.n_rounds
    shown = re.findall(r"-?\d+\.\d+", page.text)
    for digits in (9, 6):
        assert not set(shown) & {f"{cell:.{digits}f}" for row in rows for cell in row}
    # With fewer digits some number of a chart is like some cell by chance, but not two in a row.
    for form in (".5f", ".4g", ".3f"):
        assert not set(pairwise(shown)) & {(format(one, form), format(other, form)) for one, other in rows}
    settled = diagnose(log).settled
    ids = {int(number) for number in re.findall(re.escape(ROUND) + r"(\d+)", page.text)}
    assert ids <= ({settled.round} if settled is not None else set())
    assert ARM not in page.text


def test_where_it_comes_from(hostile):
    path, _, html = hostile
    content = path.read_bytes()
    text = Elements(html).text
    assert hashlib.sha256(content).hexdigest() in text
    assert f"{len(content):,} bytes" in text
    assert "300 rounds of 4 arms, 4 features" in text
    assert np.__version__ in text


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.ColumnsLeftOutWarning")
def test_every_file_behind_a_log_is_named(data_folder, tmp_path):
    folder = data_folder / "obd" / "bts" / "women"
    assert [path.name for path in open_log(folder, {}).files] == ["item_context.csv", "women.csv.gz"]
    assert {path.name for path in open_log(folder / "women.csv.gz", {}).files} == {"item_context.csv", "women.csv.gz"}
    plain = tmp_path / "log.csv"
    plain.write_text("round,chosen,x\n1,1,2\n1,0,3\n")
    assert list(open_log(plain, {}).files) == [plain]


def test_the_lines_to_copy_run(page, log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    offers = np.array([[0.0, 0.0, 1.0], [1.0, 2.0, 3.0]])
    names = {"log": log, "offers": offers}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnlookerWarning)
        exec(page.sections[5].code, names)  # noqa: S102 - what a reader would do
    assert names["policy"] == automatic(log).policy_
    assert names["position"] == int((offers @ names["policy"].theta).argmax())
