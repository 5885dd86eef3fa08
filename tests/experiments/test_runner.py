import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import runner_tasks
from onlooker.base.errors import InputError, OnlookerError, OnlookerWarning
from onlooker.experiments.ledger import first_difference, open_ledger
from onlooker.experiments.runner import Task, _Pace, run_tasks
from onlooker.experiments.workers import ONE_THREAD
from runner_tasks import notes

SETTINGS = {"schema": 1, "grid": {"d": [20, 50], "K": 200}}
TESTS = Path(runner_tasks.__file__).parent
posix = pytest.mark.skipif(os.name != "posix", reason="signals and locks of POSIX systems")


def root_tasks(log, numbers):
    return [Task(f"root-{number:02d}", {"number": number, "log": str(log)}) for number in numbers]


def files_in(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log.txt"


@pytest.fixture
def start(tmp_path):
    """Start slow tasks in a process group of their own; end all of it after the test."""
    started = []

    def start(log, seconds, folder="out"):
        tasks = f"[Task(f'slow-{{k}}', dict(number=k, log={str(log)!r}, seconds=s)) for k, s in enumerate({seconds})]"
        call = f"run_tasks(runner_tasks.slow, {tasks}, {str(tmp_path / folder)!r}, settings={SETTINGS}, workers=2)"
        imports = f"import sys; sys.path.insert(0, {str(TESTS)!r}); import runner_tasks"
        code = f"{imports}\nfrom onlooker.experiments.runner import Task, run_tasks\n{call}"
        command = [sys.executable, "-c", code]
        process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stderr.close()


def until(true, seconds=20):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process that has ended, but that its new parent has not taken note of yet.
    return not Path(f"/proc/{pid}/stat").exists() or ") Z " not in Path(f"/proc/{pid}/stat").read_text()


def workers_in(log):
    return {int(line.split(":")[0]) for line in notes(log)}


def test_results_and_files_are_the_same_for_any_number_of_workers(tmp_path, log):
    tasks = root_tasks(log, [3, 1, 2])
    one = run_tasks(runner_tasks.root, tasks, tmp_path / "one", settings=SETTINGS, workers=1)
    two = run_tasks(runner_tasks.root, tasks, tmp_path / "two", settings=SETTINGS, workers=2)
    assert list(one) == list(two) == ["root-03", "root-01", "root-02"]
    assert one == two
    assert one["root-02"] == {"rows": [{"number": 2, "root": 2**0.5, "name": None}]}
    files = files_in(tmp_path / "one")
    assert files == files_in(tmp_path / "two")
    assert list(files) == ["cells/root-01.json", "cells/root-02.json", "cells/root-03.json", "settings.json"]
    assert json.loads(files["settings.json"]) == SETTINGS
    cell = json.loads(files["cells/root-02.json"])
    assert cell == {"key": "root-02", "arguments": {"number": 2, "log": str(log)}, "result": one["root-02"]}


def test_only_what_is_missing_is_run(tmp_path, log):
    folder = tmp_path / "deep" / "out"
    first = run_tasks(runner_tasks.root, root_tasks(log, range(3)), folder, settings=SETTINGS)
    files = files_in(folder)
    again = run_tasks(runner_tasks.root, root_tasks(log, range(5)), folder, settings=SETTINGS)
    assert {key: again[key] for key in first} == first
    assert files.items() <= files_in(folder).items()
    assert sorted(notes(log)) == list("01234")
    (folder / "cells" / "root-01.json").unlink()
    reordered = {"grid": {"K": 200, "d": (20, 50)}, "schema": 1}
    assert run_tasks(runner_tasks.root, root_tasks(log, range(5)), folder, settings=reordered) == again
    assert sorted(notes(log)) == list("011234")


def test_no_task_sees_another(tmp_path):
    tasks = [Task(f"t{k}", {}) for k in range(4)]
    assert run_tasks(runner_tasks.Counter(), tasks, tmp_path / "a", settings={}, workers=1) == {
        task.key: 1 for task in tasks
    }


def test_workers_use_one_thread_each_and_the_callers_environment_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("ONLOOKER_THREADS", "2")
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    before = dict(os.environ)
    asked = partial(runner_tasks.environment, names=list(ONE_THREAD))
    found = run_tasks(asked, [Task("a", {})], tmp_path / "out", settings={})
    assert found["a"] == dict.fromkeys(ONE_THREAD, "1")
    assert dict(os.environ) == before


def test_long_tasks_start_first_and_progress_is_told(tmp_path, log):
    told = []
    tasks = [Task(f"t{k}", {"number": k, "log": str(log)}, cost) for k, cost in enumerate([1, 5, 1, 9])]
    for chosen in (tasks[:1], tasks, tasks):
        run_tasks(
            runner_tasks.root, chosen, tmp_path / "out", settings={}, workers=1, progress=lambda *now: told.append(now)
        )
    assert notes(log) == list("0312")
    assert [now[:2] for now in told] == [(0, 1), (1, 1), (1, 4), (2, 4), (3, 4), (4, 4), (4, 4)]
    left = [now[2] for now in told]
    assert left[0] is left[2] is None
    assert left[1] == left[5] == left[6] == 0
    assert all(seconds >= 0 for seconds in left[3:])


def test_time_left():
    pace = _Pace({"a": 2.0, "b": 4.0, "c": 6.0, "d": 1.0})
    pace.note("a", 10.0)
    assert pace.seconds_left(busy=0.0, workers=2) == pytest.approx(5 * 11 / 2)
    assert pace.seconds_left(busy=5.0, workers=2) == pytest.approx((5 * 11 - 5) / 2)
    pace.note("b", 20.0)
    pace.note("c", 30.0)
    assert pace.seconds_left(busy=1.0, workers=2) == pytest.approx(4)
    assert pace.seconds_left(busy=9.0, workers=2) == 0


@pytest.mark.parametrize(
    ("settings", "difference"),
    [
        ({**SETTINGS, "schema": 2}, "schema was 1, now is 2"),
        ({**SETTINGS, "grid": {"d": [20, 60], "K": 9}}, "grid.K was 200, now is 9"),
        ({**SETTINGS, "grid": {"d": [20, 60], "K": 200}}, "grid.d[1] was 50, now is 60"),
        ({**SETTINGS, "grid": {"d": [20], "K": 200}}, "grid.d was [20, 50], now is [20]"),
        ({**SETTINGS, "more": True}, "more was missing, now is true"),
        ({"schema": 1}, 'grid was {"d": [20, 50], "K": 200}, now is missing'),
        ({**SETTINGS, "schema": True}, "schema was 1, now is true"),
        ({**SETTINGS, "schema": "x" * 999}, f'schema was 1, now is "{"x" * 56}...'),
    ],
)
def test_other_settings_are_refused(tmp_path, settings, difference):
    with open_ledger(tmp_path, SETTINGS):
        pass
    before = files_in(tmp_path)
    message = f"was made with other settings ({difference}): name another folder, or delete this one"
    with pytest.raises(InputError, match=re.escape(f"{tmp_path}: {message}")):
        run_tasks(dict, [Task("a", {})], tmp_path, settings=settings)
    assert files_in(tmp_path) == before


def test_settings_that_are_the_same():
    assert first_difference({"a": [float("nan"), {}]}, {"a": [float("nan"), {}]}) == ""


def test_folders_that_are_no_experiment(tmp_path):
    (tmp_path / "thesis.tex").write_text("text")
    for folder, message in [
        (tmp_path, "holds 'thesis.tex' but no settings.json, so it is not an experiment: name a new or empty folder"),
        (tmp_path / "thesis.tex", "cannot hold an experiment (File exists)"),
        (tmp_path / "thesis.tex" / "out", "cannot hold an experiment (Not a directory)"),
    ]:
        with pytest.raises(InputError, match=re.escape(f"{folder}: {message}")):
            run_tasks(dict, [Task("a", {})], folder, settings={})
    assert files_in(tmp_path) == {"thesis.tex": b"text"}
    (tmp_path / "settings.json").write_text('{"schema": ')
    with pytest.raises(InputError, match=r"settings\.json: is not valid JSON .*: name another folder"):
        run_tasks(dict, [Task("a", {})], tmp_path, settings={})


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"arguments": {}}', "\0", "[" * 100_000])
def test_a_damaged_result_is_made_anew(tmp_path, damage):
    tasks = [Task("a", {"x": 1}), Task("b", {"x": 2})]
    results = run_tasks(dict, tasks, tmp_path / "out", settings={})
    files = files_in(tmp_path / "out")
    (tmp_path / "out" / "cells" / "a.json").write_text(damage)
    with pytest.warns(OnlookerWarning, match=r"a\.json: is damaged, so its task is run again") as caught:
        assert run_tasks(dict, tasks, tmp_path / "out", settings={}) == results
    assert len(caught) == 1
    assert files_in(tmp_path / "out") == files


def test_a_result_for_other_arguments_is_refused_and_kept(tmp_path):
    run_tasks(dict, [Task("a", {"x": 1, "y": 2})], tmp_path, settings={})
    before = files_in(tmp_path)
    with pytest.raises(InputError, match=r"a\.json: is a result for other arguments \(x was 1, now is 3\): delete it"):
        run_tasks(dict, [Task("a", {"y": 2, "x": 3})], tmp_path, settings={})
    assert files_in(tmp_path) == before


def test_what_a_killed_run_was_writing_is_swept_up(tmp_path):
    with open_ledger(tmp_path / "out", {}):
        pass
    mine, other = "cells/.a.json.0123456789abcdef.part", "cells/.a.json.notes.part"
    for name in (".settings.json.0123456789abcdef.part", mine, other):
        (tmp_path / "out" / name).write_text("half")
    run_tasks(dict, [Task("a", {})], tmp_path / "out", settings={})
    assert list(files_in(tmp_path / "out")) == [other, "cells/a.json", "settings.json"]
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / ".settings.json.0123456789abcdef.part").write_text("half")
    (tmp_path / "new" / "run.lock").write_text("1")
    run_tasks(dict, [Task("a", {})], tmp_path / "new", settings={})
    assert list(files_in(tmp_path / "new")) == ["cells/a.json", "settings.json"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            [0],
            "task t0: nothing can be done with 0 (the other tasks are done; results are kept, run again to resume)",
        ),
        ([1], "task t1: its result: cannot be kept as JSON (Object of type set is not JSON serializable)"),
        ([3, 2], "task t2: ZeroDivisionError: division by zero (2 of 4 tasks failed;"),
    ],
)
def test_a_task_that_fails_does_not_stop_the_others(tmp_path, bad, message):
    tasks = [Task(f"t{k}", {"number": k, "bad": bad}, cost=k + 1) for k in range(4)]
    with pytest.raises(OnlookerError) as caught:
        run_tasks(runner_tasks.fail, tasks, tmp_path, settings={}, workers=2)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert len(caught.value.__notes__) == len(bad)
    assert "runner_tasks.py" in caught.value.__notes__[0] or bad == [1]
    done = {f"cells/t{k}.json" for k in range(4) if k not in bad}
    assert set(files_in(tmp_path)) == done | {"settings.json"}


@posix
@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_whose_process_dies_once_is_run_again(tmp_path, log, workers):
    tasks = [Task(f"t{k}", {"number": k, "log": str(log), "times": 1}) for k in range(4)]
    results = run_tasks(runner_tasks.die, tasks, tmp_path / "out", settings={}, workers=workers)
    assert [result["rows"][0]["number"] for result in results.values()] == [0, 1, 2, 3]
    assert sorted(notes(log)) == list("01123")


@posix
@pytest.mark.parametrize("seconds", [0.01, 0.03, 0.1])
def test_a_death_while_a_large_result_is_sent_is_noticed(tmp_path, log, seconds):
    task = Task("t", {"log": str(log), "letters": 20_000_000, "seconds": seconds})
    assert len(run_tasks(runner_tasks.die_late, [task], tmp_path / "out", settings={}, workers=1)["t"]) == 20_000_000


@posix
@pytest.mark.parametrize(
    ("number", "how"), [(signal.SIGKILL, "signal 9, perhaps for lack of memory"), (signal.SIGTERM, "signal 15")]
)
def test_a_task_whose_process_always_dies_is_reported(tmp_path, log, number, how):
    arguments = {"log": str(log), "times": 9, "signal_number": int(number)}
    tasks = [Task(f"t{k}", {"number": k, **arguments}) for k in range(4)]
    with pytest.raises(OnlookerError, match=re.escape(f"task t1: its process died 2 times ({how})")):
        run_tasks(runner_tasks.die, tasks, tmp_path / "out", settings={}, workers=2)
    assert sorted(notes(log)) == list("01123")
    assert set(files_in(tmp_path / "out")) == {"settings.json", *(f"cells/t{k}.json" for k in (0, 2, 3))}


@posix
def test_ctrl_c_keeps_what_is_done_and_ends_the_workers(tmp_path, log, start):
    process = start(log, [0.0, 60.0, 60.0, 60.0])
    until(lambda: len(notes(log)) == 3)
    until((tmp_path / "out" / "cells" / "slow-0.json").exists)
    for pid in workers_in(log):
        os.kill(pid, signal.SIGINT)
    time.sleep(0.2)
    assert all(alive(pid) for pid in workers_in(log))
    interrupted = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=20)
    assert time.monotonic() - interrupted < 5
    assert error.endswith("\nKeyboardInterrupt\n")
    assert error.count("Traceback") == 1
    assert process.returncode == -signal.SIGINT
    assert not any(alive(pid) for pid in workers_in(log))
    assert set(files_in(tmp_path / "out")) == {"settings.json", "cells/slow-0.json"}


@posix
def test_a_killed_run_leaves_no_worker_and_is_resumed(tmp_path, log, start):
    process = start(log, [0.1, 0.1, 60.0, 60.0])
    until(lambda: len(notes(log)) == 4)
    until((tmp_path / "out" / "cells" / "slow-1.json").exists)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    until(lambda: not any(alive(pid) for pid in workers_in(log)), seconds=5)
    assert set(files_in(tmp_path / "out")) == {"settings.json", "run.lock", "cells/slow-0.json", "cells/slow-1.json"}
    arguments = {"log": str(log), "seconds": 0.1}
    tasks = [Task(f"slow-{k}", {"number": k, **arguments}) for k in range(2)]
    log.unlink()
    resumed = run_tasks(runner_tasks.slow, tasks, tmp_path / "out", settings=SETTINGS)
    assert not notes(log)
    assert run_tasks(runner_tasks.slow, tasks, tmp_path / "undisturbed", settings=SETTINGS) == resumed
    assert files_in(tmp_path / "out") == files_in(tmp_path / "undisturbed")


@posix
def test_one_run_at_a_time_in_a_folder(tmp_path, log, start):
    process = start(log, [60.0])
    until(lambda: notes(log))
    message = f"{tmp_path / 'out'}: process {process.pid} is at work in it: wait until it ends, or name another folder"
    with pytest.raises(InputError, match=re.escape(message)):
        run_tasks(runner_tasks.slow, [], tmp_path / "out", settings=SETTINGS)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert run_tasks(runner_tasks.slow, [], tmp_path / "out", settings=SETTINGS) == {}


def test_a_script_without_a_guard_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    call = f"run_tasks(dict, [Task('a', {{}})], {str(tmp_path / 'out')!r}, settings={{}})"
    script.write_text(f"from onlooker.experiments.runner import Task, run_tasks\n{call}\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(
        "onlooker.base.errors.OnlookerError: worker processes die before their first task (exit code 1)"
    )
    assert last.endswith('run tasks under `if __name__ == "__main__":`')


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([Task("a/b", {})], "task key 'a/b': use up to 200"),
        ([Task(".a", {})], "task key '.a': use up to 200"),
        ([Task("", {})], "task key '': use up to 200"),
        ([Task("a" * 201, {})], "use up to 200"),
        ([Task("a", {}), Task("a", {})], "task key 'a': its file name would be the same as that of 'a'"),
        ([Task("Seed", {}), Task("seed", {})], "task key 'seed': its file name would be the same as that of 'Seed'"),
        ([Task("a", {}, cost=0)], "task a: cost is 0, it must be above 0"),
        ([Task("a", {}, cost=float("nan"))], "task a: cost is nan"),
        ([Task("a", {"x": {1}})], "arguments of task a: cannot be kept as JSON"),
    ],
)
def test_tasks_that_cannot_be_run(tmp_path, tasks, message):
    with pytest.raises(InputError, match=re.escape(message)):
        run_tasks(dict, tasks, tmp_path / "out", settings={})
    assert not (tmp_path / "out").exists()


def test_other_input_that_cannot_be_used(tmp_path):
    with pytest.raises(InputError, match="workers is 0: pass at least 1"):
        run_tasks(dict, [], tmp_path / "out", settings={}, workers=0)
    with pytest.raises(InputError, match="settings: cannot be kept as JSON"):
        run_tasks(dict, [], tmp_path / "out", settings={"x": 1j})
    assert not (tmp_path / "out").exists()
