"""Mutated files of every kind are read, or refused in one line that names the file; and so is all that was found."""

import json
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.mutators import VALUES
from fuzz.outcome import complaint
from fuzz.targets import TARGETS
from onlooker.base.errors import OnlookerWarning
from onlooker.imitation.scores.loading import KINDS

KEYS = ["theta", "feature_names", "categories", "terms", "trees", "typical", "monitor", "automatic"]
FINDINGS = Path(__file__).parent / "findings"
FOUND = sorted(path for path in FINDINGS.glob("*/*") if path.is_file())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(VALUES[:40]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@pytest.fixture(scope="module")
def folder():
    with TemporaryDirectory() as place:
        yield Path(place)


@pytest.mark.parametrize("examples", [10, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TARGETS)
def test_mutated(name, examples, folder):
    """Chance is hypothesis's own, so that what fails is made smaller."""

    @settings(max_examples=examples, database=None)
    @given(st.randoms(use_true_random=False))
    def mutated(chance):
        place = folder / name
        place.mkdir(exist_ok=True)
        assert TARGETS[name].judge(TARGETS[name].make(chance), place) is None

    mutated()


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes(name, folder):
    @settings(max_examples=15, database=None)
    @given(st.binary(max_size=200))
    def any_bytes(data):
        place = folder / name
        place.mkdir(exist_ok=True)
        assert TARGETS[name].judge(data, place) is None

    any_bytes()


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        *(("policy", schema) for schema in KINDS),
        ("state", "onlooker.tracking/1"),
        ("state", "onlooker.tracking/2"),
    ],
)
def test_any_document(name, schema, folder):
    @settings(max_examples=60, database=None)
    @given(
        st.dictionaries(
            st.sampled_from(
                ["theta", "feature_names", "categories", "terms", "trees", "typical", "monitor", "automatic"]
            ),
            JSON,
        )
    )
    def any_document(values):
        place = folder / name
        place.mkdir(exist_ok=True)
        assert TARGETS[name].judge(json.dumps(values | {"schema": schema}).encode(), place) is None

    any_document()


@pytest.mark.parametrize("path", FOUND, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_was_found_before(path, tmp_path):
    assert TARGETS[path.parent.name].judge(path.read_bytes(), tmp_path, every=True) is None


def test_originals_are_read(tmp_path):
    """Else the mutations would start from nothing."""
    from fuzz import seeds

    for name, originals in {
        "csv": seeds.CSV[:4],
        "tsv": seeds.CSV[4:],
        "jsonl": seeds.JSONL,
        "nested": seeds.parquet(),
        "vw": seeds.VW,
        "dsjson": seeds.DSJSON,
        "r6a": seeds.R6A,
        "open_bandit": seeds.OPEN_BANDIT,
        "npz": [seeds.archive(one, compress=True) for one in seeds.npz()],
    }.items():
        for data in originals:
            path = TARGETS[name].write(data, tmp_path)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", OnlookerWarning)
                assert TARGETS[name].loads[0](path).n_rounds > 0


class TestComplaints:
    """The judge itself: whatever is not allowed is noticed."""

    def test_other_errors(self, tmp_path):
        assert "KeyError" in complaint(lambda _: {}["a"], tmp_path / "a", tmp_path)

    def test_a_refusal_without_the_file(self, tmp_path):
        from onlooker import InputError

        def refuse(said):
            raise InputError(said)

        path = tmp_path / "a"
        assert "does not begin" in complaint(lambda _: refuse("bad"), path, tmp_path)
        assert "not one line" in complaint(lambda _: refuse(f"{path}: bad\nworse"), path, tmp_path)
        assert "letters" in complaint(lambda _: refuse(f"{path}: {'x' * 1000}"), path, tmp_path)
        assert complaint(lambda _: refuse(f"{path}: bad"), path, tmp_path) is None

    def test_a_changed_state_that_is_taken(self, tmp_path):
        from fuzz import seeds
        from onlooker.base.documents import sealed

        content = {name: value for name, value in seeds.states()[1].items() if name != "digest"}
        assert TARGETS["tampered"].judge(sealed(content).encode(), tmp_path) is None
        other = sealed({**content, "feature_names": ["cost", "speed"]}).encode()
        assert "a changed state was taken" in TARGETS["tampered"].judge(other, tmp_path)

    def test_warnings_of_others(self, tmp_path):
        import numpy as np

        assert "RuntimeWarning leaked" in complaint(lambda _: np.float64(1e308) * 10, tmp_path / "a", tmp_path)

    def test_files(self, tmp_path):
        assert complaint(lambda path: path.write_text("x"), tmp_path / "a", tmp_path) == "a file was written"

    def test_hangs(self, tmp_path, monkeypatch):
        import time

        from fuzz import outcome

        monkeypatch.setattr(outcome, "DEADLINE", 0.05)
        assert "took more than" in complaint(lambda _: time.sleep(5), tmp_path / "a", tmp_path)
