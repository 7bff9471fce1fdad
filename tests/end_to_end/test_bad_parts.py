"""Mistakes in parts of a user's own: one line that names what is missing, exit code 2, nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosshatch.cli import main
from tests.runs.own_parts import CONFIG, SOURCE

BAD = (
    SOURCE
    + """

@dataclass
class Melting:
    local_steps: int = 1
    step_size: float = 0.1


class Loose:
    pass


@dataclass(frozen=True)
class Idle:
    local_steps: int = 1
    step_size: float = 0.1

    topology = Topology.parse("V(1)")


@dataclass(frozen=True)
class Deaf(Idle):
    def run_round(self, fed):
        return fed


@dataclass(frozen=True)
class Stepless:
    local_steps: int = 1

    topology = Topology.parse("V(1)")

    def run_round(self, fed, blocks, r):
        return blocks


@dataclass(frozen=True)
class Flat:
    local_steps: int = 1
    step_size: float = 0.1

    def run_round(self, fed, blocks, r):
        return blocks


@dataclass(frozen=True)
class Worded(Flat):
    batch_size: int | None = None

    topology = "V(1)"


@dataclass(frozen=True)
class Forgetful(Idle):
    remembers = True

    def run_round(self, fed, blocks, r):
        return blocks


@dataclass(frozen=True)
class Choosy(Mine):
    def __post_init__(self):
        raise ValueError("not today")


@dataclass(frozen=True)
class Strange(Mine):
    other: "Unheard" = None


@dataclass(frozen=True)
class Late(Mine):
    def run_round(self, fed, blocks, r):
        return 1 / (r - r)


@dataclass(frozen=True)
class Empty(Mine):
    def run_round(self, fed, blocks, r):
        pass


class Voiceless(Plain):
    predict = None


class Aimless(Plain):
    target = "anything"


class Binary(Plain):
    target = "binary"


class Skewed(Plain):
    def derivative(self, scores, y):
        return 2 * Plain.derivative(self, scores, y)


class Mixing(Plain):
    def value(self, scores, y):
        return Plain.value(self, scores, y) * len(scores) ** 0 * scores.dim() ** 0 + scores.sum() * 0 + scores.dim()

    def derivative(self, scores, y):
        return Plain.derivative(self, scores, y)


class Averaged(Plain):
    def value(self, scores, y):
        return Plain.value(self, scores, y).mean()


class Wordy(Plain):
    def value(self, scores):
        return scores


class Raising(Plain):
    def value(self, scores, y):
        raise KeyError("lost")


class Needy(Plain):
    def __init__(self, gamma):
        self.gamma = gamma


@dataclass(frozen=True)
class Part(Stage):
    def kept(self, n):
        return n


@dataclass(frozen=True)
class Liar(Rounded):
    def side_size(self, n, kind):
        return 3


@dataclass(frozen=True)
class Lossy(Rounded):
    keeps_all = True


@dataclass(frozen=True)
class Crashing(Rounded):
    def reduce(self, values, draws):
        return values.nothing


@dataclass(frozen=True)
class Silent:
    start: float = 0.1


@dataclass(frozen=True)
class Zero:
    start: float = 0.1

    def __call__(self, round):
        return 0.0


@dataclass(frozen=True)
class Ending:
    start: float = 0.1

    def __call__(self, round):
        return self.start if round < 2 else float("nan")


def undecided(scores, y, loss):
    return 0.0


def accuracy(scores, y, loss):
    return 0.0


accuracy.higher_is_better = True


def narrow(scores):
    return 0.0


narrow.higher_is_better = True


def words(scores, y, loss):
    return "good"


words.higher_is_better = True


def failing(scores, y, loss):
    return scores.nothing


failing.higher_is_better = True
"""
)


def line(text: str) -> int:
    return BAD[: BAD.index(text)].count("\n") + 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("algorithm.name=absent.py:Mine", "absent.py of an algorithm does not exist: write algorithm.name = 'path/to"),
        ("algorithm.name=mine.py:Nobody", "mine.py has no class 'Nobody'"),
        ("algorithm.name=mine.py:Loose", "mine.py:Loose is not a frozen dataclass: write @dataclass(frozen=True)"),
        ("algorithm.name=mine.py:Melting", "mine.py:Melting is not a frozen dataclass"),
        ("algorithm.name=mine.py:hits", "mine.py:hits is not a class"),
        ("algorithm.name=mine.py:Idle", "Idle has no method run_round: an algorithm needs run_round(self, fed, blocks"),
        ("algorithm.name=mine.py:Deaf", "run_round of .*mine.py:Deaf does not take what it is given: write it as run_"),
        ("algorithm.name=mine.py:Forgetful", "write it as run_round(self, fed, blocks, r, memory)"),
        ("algorithm.name=mine.py:Stepless", "Stepless has no step_size: an algorithm needs it as a field"),
        ("algorithm.name=mine.py:Flat", "Flat has no topology: an algorithm needs it as a property"),
        ("algorithm.name=mine.py:Worded", "topology of .*mine.py:Worded is 'V(1)': return Topology.parse"),
        ("algorithm.name=mine.py:Choosy", "Choosy could not be built: ValueError: not today (line "),
        ("algorithm.name=mine.py:Strange", "a type of its fields is not known: NameError: name 'Unheard'"),
        ("algorithm.local_step=3", "unknown key algorithm.local_step: did you mean 'local_steps'?"),
        ("algorithm.local_steps=few", "algorithm.local_steps = 'few'"),
        ("algorithm.step_size={kind='halving', value=1}", "algorithm.step_size = {"),
        ("model.loss=mine.py:Nobody", "mine.py has no class 'Nobody'"),
        ("model.loss=mine.py:hits", "mine.py:hits is not a class: a loss is one"),
        ("model.loss=mine.py:Voiceless", "Voiceless has no method predict: a loss needs predict(self, scores)"),
        ("model.loss=mine.py:Wordy", "value of .*mine.py:Wordy does not take what it is given"),
        ("model.loss=mine.py:Aimless", "Aimless does not say for which labels it is: write target = 'binary'"),
        ("model.loss=mine.py:Binary", "is for binary labels, the data has multiclass ones"),
        ("model.loss=mine.py:Skewed", "derivative of .*mine.py:Skewed is not that of its value: for the scores ["),
        ("model.loss=mine.py:Mixing", "value of .*mine.py:Mixing depends on the samples beside"),
        ("model.loss=mine.py:Averaged", "value of .*mine.py:Averaged returned () where (2, 6) is due, one number per"),
        ("model.loss=mine.py:Raising", "Raising could not be tried out: KeyError: 'lost' (line "),
        ("model.loss=mine.py:Needy", "Needy could not be built: TypeError"),
        ("codecs.share=mine.py:Loose", "codecs.share: .*mine.py:Loose is not a frozen dataclass"),
        ("codecs.share=mine.py:Falling(1)", "Falling is not a codec: derive Falling from crosshatch.codecs.Stage"),
        ("codecs.share=mine.py:Part", "mine.py:Part has no reduce and no restore"),
        ("codecs.share=mine.py:Rounded(1, 2)", "Rounded is given 2 arguments: it takes digits"),
        ("codecs.share=mine.py:Rounded(digit=2)", "unknown argument 'digit' of .*Rounded: did you mean 'digits'? It"),
        ("codecs.share=mine.py:Rounded(2, digits=2)", "digits of .*mine.py:Rounded is given twice"),
        ("codecs.share=mine.py:Liar", "writes 2 bytes and says it takes 5: correct side_size, kept or kind"),
        ("codecs.share=mine.py:Lossy", "loses something: keeps_all is true"),
        ("codecs.share=mine.py:Crashing", "Crashing could not be tried out: AttributeError: .* (line "),
        ("algorithm.step_size={kind='mine.py:Silent'}", "Silent has no method __call__: a schedule"),
        ("algorithm.step_size={kind='mine.py:Zero'}", "returned 0.0 for round 0: a step size is"),
        ("algorithm.step_size={kind='mine.py:Zero', stat=1}", "unknown key 'stat' of .* did you mean"),
        ("algorithm.step_size={kind='Halving', value=1}", "did you mean 'halving'?"),
        ("evaluate.metrics=['mine.py:nothing']", "mine.py has no function 'nothing'"),
        ("evaluate.metrics=['mine.py:undecided']", "does not say whether higher is better: write undecided.higher_is"),
        ("evaluate.metrics=['mine.py:accuracy']", "there is another metric 'accuracy': rename it there"),
        ("evaluate.metrics=['mine.py:narrow']", "does not take what it is given: write it as narrow(scores, y, loss)"),
        ("evaluate.metrics=['mine.py:words']", "metric 'words' returned 'good': it must return a finite number"),
        (
            "evaluate.metrics=['mine.py:failing']",
            f"mine.py, line {line('return scores.nothing')} failed with AttributeError",
        ),
        ("evaluate.metrics=['mine.py:Mine']", "mine.py:Mine is not a function"),
        (
            "evaluate.higher_is_better={hits = false}",
            "evaluate.higher_is_better.hits = false, and .* says the opposite",
        ),
        ("evaluate.higher_is_better={misses = false, hit = true}", "names 'hit', which is not a metric of your own"),
        ("evaluate.higher_is_better={misses = 3}", "evaluate.higher_is_better = {'misses': 3}"),
        ("evaluate.best_by=misses", "needs validation rows"),
    ],
)
def test_one_line_and_nothing_left(
    change: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(BAD)
    targetless = CONFIG.replace('targets = ["hits=0.5", "misses=0.2"]', "")
    if "step_size={kind='mine" in change or "Halving" in change:
        targetless = targetless.replace("mine.py:Mine", "fedbcd")
    if "metrics=" in change:
        targetless = targetless.replace("higher_is_better = {misses = false}", "")
    (tmp_path / "own.toml").write_text(targetless)
    with pytest.raises(SystemExit) as ended:
        main(["train", "own.toml", "--quiet", "--out", "run", "--set", change])
    said = capsys.readouterr().err
    assert ended.value.code == 2, said
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    place = 0
    for piece in words.split(".*"):
        assert piece in said[place:], said
        place = said.index(piece, place) + len(piece)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("algorithm.name=mine.py:Late", f"mine.py, line {line('return 1 / (r - r)')} failed with ZeroDivisionError"),
        ("algorithm.name=mine.py:Empty", "run_round of algorithm Empty returned NoneType: end it with `return blocks`"),
        ("algorithm.step_size={kind='mine.py:Ending'}", "schedule Ending returned nan for round 2"),
    ],
)
def test_while_training(change: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(BAD)
    known = CONFIG.replace("mine.py:Mine", "fedbcd") if "step_size" in change else CONFIG
    (tmp_path / "own.toml").write_text(known)
    out = str(tmp_path / "run")
    with pytest.raises(SystemExit) as ended:
        main(["train", str(tmp_path / "own.toml"), "--quiet", "--out", out, "--set", change])
    said = capsys.readouterr().err
    assert ended.value.code == 2, said
    assert words in said
    assert said.count("\n") == 1


def test_a_loss_on_a_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(BAD)
    text = CONFIG.replace('share = "mine.py:Rounded(digits=12)"', "").replace("batch_size = 50", "")
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(SystemExit):
        main(["train", str(tmp_path / "own.toml"), "--set", "algorithm.name=stcd", "--out", str(tmp_path / "run")])
    assert "computes visits for the losses squared, logistic, cross_entropy only" in capsys.readouterr().err
