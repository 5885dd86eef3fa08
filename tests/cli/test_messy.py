"""Messy logs on the command line: what is said about them, in the words of the command line."""

import pytest

from onlooker import LinearPolicy


@pytest.fixture
def csv(tmp_path):
    def write(*lines, name="log.csv"):
        path = tmp_path / name
        path.write_text("\n".join((*lines, "")))
        return path

    return write


def test_outcomes_are_said_to_be_read_past(run, csv, tmp_path):
    path = csv("round,chosen,price,Reward,cost", "1,1,2,0,3", "1,0,3,0,4")
    out = tmp_path / "out.parquet"
    assert "ignored: 'Reward', 'cost'" in run("convert", path, out).out
    assert (
        "  ignored: 'Reward'\n  2 features: 'price', 'cost=4'\n" in run("convert", path, out, "--category", "cost").out
    )
    assert "ignored" not in run("convert", path, out, "--feature", "price").out


def test_times_out_of_order_are_told_with_the_option_that_sorts(run, csv, tmp_path):
    path = csv(
        "round,chosen,price,time", *(f"{t},1,{t},2024-01-{day}\n{t},0,2,2024-01-{day}" for t, day in ((1, 20), (2, 19)))
    )
    ran = run("convert", path, tmp_path / "out.parquet")
    assert "warning: 'time' looks like a time and is not in order: name it as --order-by\n" in ran.err
    assert "not in order" not in run("convert", path, tmp_path / "out.parquet", "--order-by", "time").err


def test_messages_name_the_options_of_the_command_line(refused, csv):
    path = csv("round,chosen,price", "1,1,2", "1,0,3")
    for option in ("--round", "--category", "--feature", "--order-by", "--arm"):
        assert refused("fit", path, option, "nosuch").endswith(f"name it as {option}\n")
    events = csv("0:1:0.5 | price:1", "| price:2", "", name="log.vw")
    assert "no option --round: it takes --feature, --cross, --like" in refused("fit", events, "--round", "trip")
    shared = csv("shared | age:3", "0:1:0.5 | price:1", "| price:2", "", name="log.vw")
    assert "leave it out or pass --cross" in refused("fit", shared, "--feature", "age")


def test_warnings_and_assumptions_name_them_too(run, csv, tmp_path):
    shared = csv("shared | age:3", "0:1:0.5 | price:1", "| price:2", "", name="log.vw")
    ran = run("convert", shared, tmp_path / "log.parquet")
    assert "--cross multiplies them" in ran.err
    assert "cross=True" not in ran.err


def test_by_on_a_command_for_one_learner_says_where_it_is_known(refused, csv):
    path = csv("round,chosen,price", "1,1,2", "1,0,3")
    for command in ("compare",):
        assert "fit, track, diagnose, report and propensities have --by COLUMN" in refused(
            command, path, "--by", "shop"
        )


def test_learners_that_share_round_ids_are_sent_to_by(refused, csv):
    path = csv("round,chosen,price,time", "1,1,2,5", "1,0,3,5", "1,1,2,9", "1,0,3,9")
    line = refused("fit", path, "--order-by", "time")
    assert "a round happens at one time; if several learners share ids, separate them with --by" in line


def test_outputs_that_cannot_be_written_are_told_what_can(refused, csv, tmp_path):
    path = csv("round,chosen,price", "1,1,2", "1,0,3")
    assert "is a folder: name a file in it to write" in refused("convert", path, tmp_path)
    for name in ("out", "out.gz", "out.tsv", "out.html"):
        for command in (("convert", path, tmp_path / name), ("simulate", "--out", tmp_path / name)):
            line = refused(*command)
            assert "is of a kind that is not written: write .csv, .csv.gz, " in line
            assert ".tsv" not in line.partition("written: ")[2]
    assert "write .csv, .csv.gz, .json" in refused("convert", path, tmp_path / "out.vw", "--long")


def test_a_saved_policy_is_no_log(refused, tmp_path):
    LinearPolicy([1.0], feature_names=["price"]).save(tmp_path / "policy.json")
    assert "policy.json: this is a policy saved by onlooker, not a log" in refused("report", tmp_path / "policy.json")


@pytest.mark.parametrize("text", ["round,chosen,größe\n1,1,2\n1,0,3\n", "round,chosen,x,y\n1,1,ü,1\n1,0,a,2\n"])
def test_latin_1_is_told_to_be_saved_as_utf_8(refused, tmp_path, text):
    (tmp_path / "log.csv").write_bytes(text.encode("latin-1"))
    assert refused("fit", tmp_path / "log.csv").endswith("save it as UTF-8\n")


def test_mistyped_lines_end_with_where_the_help_is(refused):
    assert refused("foo").endswith(" See onlooker --help\n")
    assert refused("fit").endswith(" See onlooker fit --help\n")


def test_a_gap_says_how_many_there_are(refused, csv):
    path = csv("round,chosen,price", "1,1,2", "1,0,", "2,1,", "2,0,3")
    assert "row 2 (counting from 1, without the header) is missing, one of 2 such rows: " in refused("fit", path)
    path = csv("round,chosen,price", "1,1,2", "1,0,", "2,1,2", "2,0,3")
    assert "without the header) is missing: " in refused("fit", path)


def test_events_out_of_order_are_told_once(run, csv, tmp_path):
    event = '{{"_labelIndex": 0, "Timestamp": "2024-05-0{}", "c": {{"_multi": [{{"a": 1}}, {{"a": 2}}]}}}}'
    path = csv(event.format(2), event.format(1), name="log.dsjson")
    said = run("convert", path, tmp_path / "log.csv").err
    assert said == "warning: 'Timestamp' looks like a time and is not in order: name it as --order-by\n"


def test_gaps_of_all_columns_are_told_at_once(refused, csv):
    path = csv("round,chosen,price,colour,x", "1,1,2,red,1", "1,0,,blue,2", "2,1,3,,nan", "2,0,,red,4")
    line = refused("fit", path)
    assert "missing values in 'price' (2 rows), 'colour' (1 row), 'x' (1 row), first in row 2 (" in line
    assert line.endswith(
        "fill them in, a category with a level such as 'none', leave the round out (--missing leave-out), "
        "or name the other columns with --feature\n"
    )
    assert "column 'chosen', row 2" in refused("fit", csv("round,chosen,colour", "1,1,", "1,,red", "2,1,blue"))


def test_learners_told_apart_by_what_changes_within_a_round(refused, csv):
    path = csv("round,chosen,brand,x", "1,1,a,1", "1,0,b,2", "2,1,a,1", "2,0,a,2")
    assert "where 'brand' differs within a round, it cannot identify learners" in refused(
        "diagnose", path, "--by", "brand"
    )
    shared = csv("round,chosen,x", "1,1,1", "1,0,2", "1,1,1", "1,0,2")
    assert "if several learners share ids, separate them with --by" in refused("diagnose", shared)


def test_amounts_are_not_taken_for_categories(refused, csv):
    rows = [f"{t},{int(k == 0)},${10 * t + k}.49,{k}" for t in range(30) for k in range(2)]
    for options in ((), ("--feature", "price")):
        line = refused("fit", csv("round,chosen,price,x", *rows), *options)
        assert "column 'price' holds '$0.49' and the like, which is text: write plain numbers" in line


def test_a_log_is_not_overwritten(refused, csv, tmp_path):
    path = csv("round,chosen,price", "1,1,2", "1,0,3", "2,0,2", "2,1,3")
    kept = path.read_bytes()
    (tmp_path / "link.csv").symlink_to(path)
    for command in (
        ("fit", path, "--out", path),
        ("fit", path, "--out", tmp_path / "link.csv"),
        ("track", path, "--out", path),
        ("report", path, "--out", path),
        ("compare", path, "--out", path),
        ("convert", path, path),
        ("convert", tmp_path / "*.csv", path),
    ):
        assert "is the log itself, which would be lost: name another file" in refused(*command)
        assert path.read_bytes() == kept


def test_a_column_that_nobody_named_is_not_taken_for_mistyped(refused, csv):
    line = refused("fit", csv("visit,chosen,brand", "1,1,2", "1,0,3"))
    assert "did you mean" not in line
    assert "did you mean 'Round'?" in refused("fit", csv("Round,chosen,brand", "1,1,2", "1,0,3"))


def test_names_cannot_command_a_terminal(run, csv):
    path = csv("round,chosen,x\x1b[2J,y", "1,1,2,1", "1,0,3,4", "2,1,1,2", "2,0,2,2", "3,1,5,1", "3,0,2,3")
    ran = run("fit", path)
    assert ran.code == 0
    assert "\x1b" not in ran.out + ran.err
    assert "x?[2J" in ran.out
    others = csv("round,chosen,a\u200cb,nb\xa0sp", "1,1,2,1", "1,0,3,4", "2,1,1,2", "2,0,2,2", "3,1,5,1", "3,0,2,3")
    assert "a\u200cb" in run("fit", others).out


def test_times_as_numbers_are_known_by_their_names(run, csv):
    rows = ["1,1,9,1", "1,0,9,2", "2,1,7,1", "2,0,7,3", "3,1,8,1", "3,0,8,2"]
    assert (
        "'ts' looks like a time and is not in order: name it as --order-by"
        in run("fit", csv("round,chosen,ts,x", *rows)).err
    )
    assert run("fit", csv("round,chosen,time,x", *rows)).err == ""


def test_how_a_file_is_written_is_told(run, csv):
    path = csv("round;chosen;x", "1;1;2,5", "1;0;3,5", "2;0;2,5", "2;1;3,5")
    assert "read as long CSV with semicolons: rounds from 'round'" in run("fit", path, "--decimal", ",").out
    assert "read as long CSV: rounds from 'round'" in run("fit", csv("round,chosen,x", "1,1,2", "1,0,3")).out


def test_decimal_commas_are_refused_with_the_option_to_give(refused, csv):
    path = csv("round;chosen;x", "1;1;2,5", "1;0;3,5")
    assert "column 'x', row 1 (counting from 1, without the header) is '2,5': pass --decimal ," in refused("fit", path)


def test_columns_named_in_one_go(refused, csv):
    path = csv("round,chosen,price,rating", "1,1,2,1", "1,0,3,2")
    assert "name 'price', 'rating' one by one" in refused("fit", path, "--feature", "price,rating")
