"""VW text: what its lines mean, and logs written and read back."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlooker import BanditLog, InputError, LinearPolicy, read_log, write_log
from onlooker.base.errors import MixedFeatureWarning, SharedFeaturesWarning, UnseenCategoryWarning
from onlooker.formats import sparse_rows
from strategies import plains


@pytest.fixture
def read(tmp_path):
    def log(text, name="log.vw", **options):
        (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return read_log(tmp_path / name, **options)

    return log


def cells(log):
    """Every arm as a dictionary of what is not 0."""
    return [
        {name: value for name, value in zip(log.feature_names, row, strict=True) if value}
        for row in log.features.tolist()
    ]


def test_blocks_labels_and_values(read):
    log = read("| a:2 b\n0:1.5:0.25 | b:-3e-1\n\n1:0:1 |n a\n")
    assert log.feature_names == ("a", "b", "n^a")
    assert log.features.tolist() == [[2, 1, 0], [0, -0.3, 0], [0, 0, 1]]
    assert log.offsets.tolist() == [0, 2, 3]
    assert log.chosen.tolist() == [1, 0]
    assert log.round_ids is None
    assert log.arm_ids is None


@pytest.mark.parametrize(
    "text", ["\n\n\n0:0:1 | a\n\n\n \t\n| a\n0:0:1 | a:2\n\n", "0:0:1 | a\r\n\r\n| a\r\n0:0:1 | a:2"]
)
def test_any_number_of_blank_lines_parts_rounds(read, text):
    log = read(text)
    assert log.offsets.tolist() == [0, 1, 3]
    assert log.chosen.tolist() == [0, 1]


def test_the_action_in_the_label_means_nothing(read):
    assert read("| a\n7:1:0.5 | b\n").chosen.tolist() == [1]
    assert read("| a\n1:1 | b\n").chosen.tolist() == [1]


def test_a_mark_of_utf8_is_no_part_of_the_first_line(read):
    assert read(b"\xef\xbb\xbf1:1:1 | a\n| b\n").chosen.tolist() == [0]


def test_namespaces_scale_numbers_but_not_categories(read):
    log = read("0:0:1 |n:3 a b:2 c:x | a:5\n|n:3 c:y\n")
    assert log.feature_names == ("n^a", "n^b", "n^c=y", "a")
    assert log.features.tolist() == [[3, 6, 0, 5], [0, 0, 1, 0]]
    assert dict(log.categories) == {"n^c": ("x", "y")}


def test_a_category_that_is_absent_somewhere_is_told_from_all_of_its_levels(read):
    log = read("0:0:1 | c:x\n| c:y\n| p\n")
    assert dict(log.categories) == {"c": ("", "x", "y")}
    assert cells(log) == [{"c=x": 1}, {"c=y": 1}, {"p": 1}]


def test_what_looks_like_a_number_to_python_alone_is_a_category(read):
    log = read("0:0:1 | c:1_0 z:1\n| c:2_0\n| c:1_0\n")
    assert dict(log.categories) == {"c": ("1_0", "2_0")}


def test_features_of_one_name_add_up(read):
    assert read("0:0:1 | a:1 a:2.5 a\n| a\n").features.tolist() == [[4.5], [1]]


def test_features_without_a_name_are_counted(read):
    log = read("0:0:1 |n :0.5 :2\n|n 1:7\n")
    assert log.feature_names == ("n^0", "n^1")
    assert log.features.tolist() == [[0.5, 2], [0, 7]]


@pytest.mark.parametrize(
    ("label", "picked"),
    [("0:1:0.5 'tag ", True), ("0:1:0.5 2.0 tag", True), ("'tag ", False), ("tag", False), ("2.0 tag", False)],
)
def test_tags_and_weights_beside_the_label(read, label, picked):
    other = "" if picked else "0:1:1 "
    log = read(f"{label}| a\n{other}other| b\n" if picked else f"{label}| a\n{other}'other | b\n")
    assert log.chosen.tolist() == [0 if picked else 1]
    assert log.arm_ids.tolist() == ["tag", "other"]


def test_a_label_that_touches_the_bar_is_a_tag_as_in_vw(read):
    with pytest.raises(InputError, match="line 1 begins a round without a pick"):
        read("0:1:0.5| a\n| b\n")


def test_names_may_hold_anything_else(read):
    log = read("0:0:1 |n/s ü=1&x^y:2 -_(%):3\n|n/s é\n")
    assert log.feature_names == ("n/s^ü=1&x^y", "n/s^-_(%)", "n/s^é")


def test_shared_features_are_left_out_by_name(read):
    with pytest.warns(SharedFeaturesWarning, match=r"'u\^age', 'u\^city'"):
        log = read("shared |u age:30 city:x\n0:0:1 |a p:2\n|a p:3\n")
    assert log.feature_names == ("a^p",)


def test_shared_features_crossed_with_those_of_the_arms(read):
    text = (
        "shared 'r1 |u age:30 city:x\n0:0:1 |a p:2 q:5\n|a p:3\n\n"
        "0:0:1 |a p:1\n\n"
        "shared 'r3 |u age:2 city:y\n|a q:4\n1:1:1 |a p:7\n"
    )
    log = read(text, cross=True)
    assert cells(log) == [
        {"a^p": 2, "a^q": 5, "u^age x a^p": 60, "u^age x a^q": 150, "u^city=x x a^p": 2, "u^city=x x a^q": 5},
        {"a^p": 3, "u^age x a^p": 90, "u^city=x x a^p": 3},
        {"a^p": 1},
        {"a^q": 4, "u^age x a^q": 8, "u^city=y x a^q": 4},
        {"a^p": 7, "u^age x a^p": 14, "u^city=y x a^p": 7},
    ]
    assert log.round_ids is None
    again = read(text.partition("\n\n")[0] + "\n", cross=True, like=log)
    assert again.feature_names == log.feature_names
    assert cells(again) == cells(log)[:2]


def test_rounds_are_named_where_every_shared_line_is(read):
    with pytest.warns(SharedFeaturesWarning):
        log = read("shared '07 |u a\n0:0:1 | p\n\nshared '08 |\n0:0:1 | p\n")
    assert log.round_ids.tolist() == ["07", "08"]


def test_features_can_be_chosen(read):
    text = "shared |u age:30\n0:0:1 |a p:2 q:5 c:x\n|a p:3 c:y\n"
    assert read(text, features=["a^c", "a^p"]).feature_names == ("a^c=y", "a^p")
    assert read(text, features=["u^age", "a^q"], cross=True).feature_names == ("a^q", "u^age x a^q")
    with pytest.raises(InputError, match=r"'u\^age' is shared by the arms of a round"):
        read(text, features=["u^age"])
    with pytest.raises(InputError, match="did you mean 'a\\^q'"):
        read(text, features=["a^Q"])
    with pytest.raises(InputError, match="option 'cross' is 'yes'"):
        read(text, cross="yes")


def test_encoded_like_an_earlier_log(read):
    first = read("0:0:1 | p:2 c:x\n| c:y\n| c:z\n")
    policy = LinearPolicy([1, 2, 3], first.feature_names, categories=first.categories)
    with pytest.warns(UnseenCategoryWarning, match="'c' has the level 'w'"):
        log = read("0:0:1 | other:1 c:z\n| p:9 c:w\n", like=policy)
    assert log.feature_names == first.feature_names
    assert log.categories == first.categories
    assert log.features.tolist() == [[0, 0, 1], [9, 0, 0]]


def test_too_many_features_for_memory_say_how_to_choose(read, monkeypatch):
    def full(needed):
        if needed > 8 * 2 * 500:
            raise InputError("would take too much")

    monkeypatch.setattr(sparse_rows, "check_memory", full)
    text = "0:0:1 | " + " ".join(f"f{j}" for j in range(1000)) + "\n| g\n"
    with pytest.raises(InputError, match=r"1,001 features and 2 offered arms so far.*features=\[\.\.\.\]"):
        read(text)
    assert read(text, features=["f7", "g"]).features.tolist() == [[1, 0], [0, 1]]


def test_rows_are_packed_in_parts_without_a_trace(read, monkeypatch):
    text = "".join(f"| a:{t} c:{'xyz'[t % 3]}\n0:0:1 | b:{t + 0.5} c:x\n\n" for t in range(1, 50))
    whole = read(text)
    monkeypatch.setattr(sparse_rows, "_CELLS", 7)
    parts = read(text)
    assert np.array_equal(parts.features, whole.features)
    assert parts.feature_names == whole.feature_names == ("a", "c=y", "c=z", "b")


def test_rows_become_a_sparse_matrix_in_its_canonical_form():
    rng = np.random.default_rng(0)
    rows, expected = sparse_rows.SparseRows(sparse_rows.Columns()), np.zeros((40, 30))
    for row in range(40):
        for j, value in zip(rng.integers(0, 30, size=60).tolist(), rng.normal(size=60).tolist(), strict=True):
            rows.add(f"f{j}", value)
            expected[row, j] += value
        rows.end_row(line=row)
    layout = rows.layout()
    matrix = rows.matrix(layout)
    assert matrix.format == "csr"
    assert matrix.has_canonical_format
    order = [int(name[1:]) for name in layout.names]
    assert matrix.toarray().tobytes() == expected[:, order].tobytes()


NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64)
WORDS = st.text("abXY09_=^-.é", min_size=1, max_size=4)


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(["", "n", "ns2"]), WORDS, st.none() | NUMBERS), max_size=5),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([" ", "\t", "  "]),
    st.sampled_from([None, 0.5]),
)
def test_against_a_plain_reading(tmp_path_factory, arms, blank, scale):
    lines, expected = [], []
    for k, features in enumerate(arms):
        line, row = "1:1:1 " if k == 0 else "", {}
        for namespace, name, value in features:
            line += f"|{namespace}{f':{scale}' if scale and namespace else ''}{blank}{name}"
            line += "" if value is None else f":{value!r}"
            line += blank
            full = f"{namespace}^{name}" if namespace else name
            amount = (1.0 if value is None else value) * (scale if scale and namespace else 1.0)
            row[full] = row.get(full, 0.0) + amount
        lines.append(line if features else line + "|")
        expected.append({name: value for name, value in row.items() if value})
    path = tmp_path_factory.mktemp("vw") / "log.vw"
    path.write_text("\n".join(lines) + "\n")
    if not any(arms):
        with pytest.raises(InputError, match="describe the arms"):
            read_log(path)
    elif all(np.isfinite(list(row.values())).all() for row in expected):
        assert cells(read_log(path)) == expected


@given(plains(), st.booleans(), st.sampled_from(["vw", "txt", "dat", "vw.gz", "dsjson", "dsjson.gz"]))
def test_written_and_read_back(tmp_path_factory, plain, named, suffix):
    n, rows, d = len(plain.rounds), sum(map(len, plain.rounds)), plain.n_features
    names = [["a", "n^b", "n^c", "m^n^d", "^e", "f^", "n^g", "h=1"][j % 8] + str(j // 8 or "") for j in range(d)]
    ids = {"round_ids": np.arange(n) + 2**53, "arm_ids": np.array([f"0{k}" for k in range(rows)], dtype=object)}
    log = plain.log(feature_names=names, **(ids if named else {}))
    path = tmp_path_factory.mktemp("log") / f"log.{suffix}"
    write_log(log, path)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == suffix.endswith("gz")
    again = read_log(path)
    assert again.features.dtype == np.float64
    assert np.array_equal(again.features, log.features)
    assert np.array_equal(again.offsets, log.offsets)
    assert np.array_equal(again.chosen, log.chosen)
    assert again.feature_names == log.feature_names
    for name in ("round_ids", "arm_ids"):
        found, wanted = getattr(again, name), getattr(log, name)
        assert (found is None) == (wanted is None)
        assert found is None or found.tolist() == wanted.tolist()


@pytest.mark.parametrize("suffix", ["vw", "dsjson"])
def test_every_bit_but_the_sign_of_zero_survives(tmp_path, suffix):
    random = np.frombuffer(np.random.default_rng(0).bytes(8 * 5000), dtype=np.float64)
    values = random[np.isfinite(random)][:, None]
    log = BanditLog(values, np.arange(len(values) + 1), np.zeros(len(values), dtype=int))
    write_log(log, tmp_path / f"log.{suffix}")
    again = read_log(tmp_path / f"log.{suffix}")
    assert again.features.tobytes() == log.features.tobytes()
    assert again.feature_names == ("x0",)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"feature_names": ["a b", "c"]}, "cannot hold a feature called 'a b'"),
        ({"feature_names": ["a", "x:y"]}, "cannot hold a feature called 'x:y'"),
        ({"feature_names": ["a|", "b"]}, "rename it without blanks"),
        ({"feature_names": ["", "b"]}, "cannot hold a feature called ''"),
        ({"arm_ids": ["a b", "c"]}, "cannot hold the arm id 'a b'"),
        ({"round_ids": ["a|b"]}, r"cannot hold the round id 'a\|b'"),
    ],
)
def test_names_that_do_not_fit_are_refused_and_nothing_is_written(tmp_path, parts, message):
    log = BanditLog(np.eye(2), [0, 2], [0], **parts)
    with pytest.raises(InputError, match=message) as caught:
        write_log(log, tmp_path / "log.vw")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_the_same_log_compresses_to_the_same_bytes(tmp_path):
    log = BanditLog(np.eye(2), [0, 2], [0])
    for name in ("a.vw.gz", "b.vw.gz"):
        write_log(log, tmp_path / name)
    assert (tmp_path / "a.vw.gz").read_bytes() == (tmp_path / "b.vw.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.vw.gz").read_bytes()) == b"0:0:1 | x0:1.0 x1:0.0\n| x1:1.0\n\n"


def test_a_feature_that_mixes_numbers_and_text_is_told(tmp_path):
    path = tmp_path / "log.vw"
    path.write_text("0:1:0.5 | price:1 size:2\n| price:2 size:2\n\n0:1:0.5 | price:abc size:4\n| price:2 size:3\n")
    with pytest.warns(MixedFeatureWarning, match="line 4 has 'abc' as its 'price', which is a number before"):
        read_log(path)
    path.write_text("0:1:0.5 | price:cheap size:2\n| price:dear size:1\n\n0:1:0.5 | price:2 size:4\n| price:dear\n")
    with pytest.warns(MixedFeatureWarning, match="line 4 has a number as its 'price', which is text before"):
        read_log(path)
    # What is not read may be as it likes.
    assert read_log(path, features=["size"]).feature_names == ("size",)


def test_contexts_have_the_arm_as_namespace(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    log = BanditLog.from_contexts(X, rng.choice([9, 10, 100], 40), feature_names=["age", "spend"])
    path = tmp_path / "log.vw"
    write_log(log, path)
    back = read_log(path)
    assert back.feature_names is not None
    assert set(back.feature_names) >= {"9^age", "10^spend", "100^age"}
    theta = rng.normal(size=6)
    by_name = dict(zip(["9^age", "9^spend", "10^age", "10^spend", "100^age", "100^spend"], theta, strict=True))
    np.testing.assert_allclose(
        back.features @ np.array([by_name[name] for name in back.feature_names]), log.features @ theta
    )
    assert back.chosen.tolist() == log.chosen.tolist()
