"""The table of options: precedence, errors, and that the documentation is current."""

import re
from pathlib import Path

import pytest

from torch_accel import options

ROOT = Path(__file__).resolve().parents[2]


def test_defaults():
    chosen = options.resolve({}, environ={})
    assert (chosen.target, chosen.fallback, chosen.on_error, chosen.dump_dir) == ("auto", "allow", "raise", "")


def test_given_option_wins_over_environment_and_environment_over_default():
    environ = {"ACCEL_FALLBACK": "error", "ACCEL_DUMP_DIR": "here"}
    chosen = options.resolve({"fallback": "allow"}, environ)
    assert chosen.fallback == "allow"
    assert chosen.dump_dir == "here"
    assert options.resolve(None, environ).fallback == "error"


def test_a_path_is_text(tmp_path):
    assert options.resolve({"dump_dir": tmp_path}, {}).dump_dir == str(tmp_path)


def test_unknown_option_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown option 'tune'; known options are target, fallback, "):
        options.resolve({"tune": 1}, {})


@pytest.mark.parametrize(
    ("given", "environ", "message"),
    [
        ({"fallback": "never"}, {}, "option 'fallback' is 'never'; known values are allow, error"),
        ({}, {"ACCEL_PROGRESS": "yes"}, "environment variable ACCEL_PROGRESS is 'yes'; known values are auto, on, off"),
        ({"fallback": True}, {}, "option 'fallback' must be text, not True"),
        ({"target": "hal:9000"}, {}, "option 'target' is 'hal:9000'; known values are "),
    ],
)
def test_wrong_value_lists_the_known_ones(given, environ, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        options.resolve(given, environ)


@pytest.mark.parametrize("mode", [None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_known_modes(mode):
    assert options.check_mode(mode) == (mode or "default")


def test_unknown_mode_lists_the_known_ones():
    with pytest.raises(ValueError, match="unknown mode 'fast'; known modes are default, reduce-overhead, max-autotune"):
        options.check_mode("fast")


def test_documentation_is_current():
    assert (ROOT / "docs" / "options.md").read_text() == options.markdown(), "run `make docs`"
