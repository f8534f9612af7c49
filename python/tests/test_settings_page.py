"""The page with every setting says what the code says."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_script_makes_of_the_code():
    spec = importlib.util.spec_from_file_location("settings_page", ROOT / "scripts" / "settings_page.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert page == script.page(), "run: python scripts/settings_page.py > docs/settings.md"
    for setting in ("refresh_every", "hidden_precision", "tail_dof", "forget", "batch_root"):
        assert f"| `{setting}` |" in page
