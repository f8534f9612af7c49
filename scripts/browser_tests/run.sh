#!/bin/sh
# The page of `bayespc serve` in a real browser. Chromium is installed if it is missing and this is root on a system
# with apt-get; where it cannot be, the tests are skipped with a word.
#
#   scripts/browser_tests/run.sh [options of pytest]
#   scripts/browser_tests/run.sh --install    only see that there is a browser
#
# CHROMIUM names the browser. SCREENSHOTS names a folder for pictures of every test.
set -eu
cd "$(dirname "$0")/../.."

find_browser() {
    for name in ${CHROMIUM:-} chromium chromium-browser google-chrome; do
        command -v "$name" && return
    done
    return 1
}

if ! browser=$(find_browser); then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing chromium for the tests of the page"
        (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium) >/dev/null 2>&1 || true
    fi
    if ! browser=$(find_browser); then
        echo "tests of the page SKIPPED: there is no Chromium and it could not be installed"
        exit 0
    fi
fi
[ "${1:-}" != --install ] || exit 0
CHROMIUM=$browser exec .venv/bin/python -m pytest -q scripts/browser_tests "$@"
