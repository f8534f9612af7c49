#!/bin/sh
# Check what a user gets: install into a fresh environment, with nothing but the package's own dependencies,
# and use it from there.
#
#   scripts/check_wheel.sh dist/bayespc-*.whl      a wheel, which must be smaller than 8 MB
#   scripts/check_wheel.sh .                       the source, as `pip install .` builds it
#
# PYTHON names the interpreter (python3).
set -eu
what=$(realpath "${1:?what to install: a wheel, or . for the source}")

case $what in *.whl)
    bytes=$(wc -c <"$what")
    [ "$bytes" -lt 8000000 ] || { echo "$what has $bytes bytes, not less than 8 MB" >&2; exit 1; } ;;
esac

room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
"${PYTHON:-python3}" -m venv "$room/venv"
"$room/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$what"

# From elsewhere, so that the source tree cannot stand in for what was installed.
cd "$room"
venv/bin/python - <<'END'
from importlib.metadata import distributions
from importlib.util import find_spec

import bayespc
from bayespc import BPCClassifier, BPCRegressor, datasets

absent = [name for name in ("matplotlib", "tqdm", "pandas", "polars", "ngboost") if find_spec(name)]
assert not absent, f"not a dependency, yet installed: {absent}"

X, y = datasets.make_moons(200, random_state=0)
classifier = BPCClassifier(max_iter=30, random_state=0, verbose=1).fit(X, y)
assert classifier.score(X, y) > 0.9, classifier.score(X, y)
mean, std = BPCRegressor(max_iter=10, random_state=0).fit(X, y).predict(X, return_std=True)
assert (std > 0).all()
classifier.save("moons.safetensors")
assert (bayespc.load("moons.safetensors").predict_proba(X) == classifier.predict_proba(X)).all()
try:
    from bayespc import plots

    plots.bands(classifier, X, y)
except ImportError as error:
    assert "matplotlib" in str(error), error
else:
    raise AssertionError("plots.bands needs matplotlib, which is not installed")
others = sorted(d.name for d in distributions() if d.name not in ("bayespc", "pip", "setuptools"))
print("bayespc", bayespc.__version__, "works beside", *others)
END
case $what in *.whl) echo "$(basename "$what"): $bytes bytes" ;; esac
