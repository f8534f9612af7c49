"""The page of `bayespc serve` as people use it: with a mouse, with keys, on a small screen, in the dark."""

import csv
import json
import os
import random
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import built
import pytest

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

QUICK = [
    "--set",
    "training.epochs=20",
    "--set",
    "network.hidden_layer_sizes=[16]",
    "--search",
    "off",
    "--set",
    "members=2",
]
SCREENSHOTS = os.environ.get("SCREENSHOTS")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Return a folder with tables of flats and of flowers."""
    folder = tmp_path_factory.mktemp("page")
    chance = random.Random(0)
    with (folder / "flats.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["size", "city", "balcony", "built", "rent"])
        for _ in range(200):
            size, city = round(chance.uniform(20, 120), 1), chance.choice(["Bern", "Chur", "Genf"])
            built = f"{chance.randint(1990, 2020)}-{chance.randint(1, 12):02d}-01"
            rent = 12 * size + {"Bern": 300, "Chur": 0, "Genf": 500}[city] + chance.gauss(0, 40)
            writer.writerow([size, city, chance.random() < 0.5, built, round(rent)])
    with (folder / "flowers.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["petal", "sepal", "species"])
        for i in range(150):
            k = i % 3
            writer.writerow(
                [
                    round(chance.gauss(1.5 + 2 * k, 0.4), 2),
                    round(chance.gauss(5 + k / 2, 0.4), 2),
                    ["setosa", "versicolor", "virginica"][k],
                ]
            )
    return folder


@pytest.fixture(scope="session")
def address(folder):
    """Serve a model of each table."""
    command = built.command()
    for table, target in (("flats", "rent"), ("flowers", "species")):
        fit = [
            command,
            "fit",
            folder / f"{table}.csv",
            "--target",
            target,
            "--out",
            folder / f"{target}.safetensors",
            *QUICK,
        ]
        subprocess.run(fit, check=True, capture_output=True, timeout=120)
    models = [folder / "rent.safetensors", folder / "species.safetensors"]
    running = subprocess.Popen(
        [command, "serve", *models, "--port", "0", "--log", "json"], stderr=subprocess.PIPE, text=True
    )
    first = json.loads(running.stderr.readline())
    # A pipe that nobody reads is full some day, and the server would wait for ever.
    threading.Thread(target=running.stderr.read, daemon=True).start()
    try:
        yield f"http://{first['address']}"
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(timeout=60)


@pytest.fixture(scope="session")
def browser():
    """Start a browser."""
    with playwright.sync_playwright() as driver:
        # As root there is no sandbox to be had; nothing but our own page is loaded.
        browser = driver.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, address, request):
    """Return a function that opens the page; whatever the browser complains about fails the test."""
    complaints, pages = [], []

    def open_it(place="", **context):
        page = browser.new_context(
            viewport=context.pop("viewport", {"width": 1280, "height": 900}), **context
        ).new_page()
        page.on(
            "console",
            lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda asked: (
                None
                if asked.url.startswith((address, "blob:"))
                else complaints.append(f"asked for {asked.url}")
            ),
        )
        page.goto(f"{address}/{place}")
        page.wait_for_selector("#curve-list figure svg")
        page.wait_for_selector("#drivers-lists li")
        pages.append(page)
        return page

    yield open_it
    for i, page in enumerate(pages):
        if SCREENSHOTS:
            page.screenshot(path=Path(SCREENSHOTS) / f"{request.node.name}-{i}.png", full_page=True)
        page.context.close()
    expected = [text for text in complaints if "status of 400" not in text]
    assert not expected, expected


def number(page, selector="#mean"):
    """Return a number that the page shows."""
    return float(page.locator(selector).inner_text().replace("−", "-"))


def until(holds):
    """Wait for something that only Python can ask: the page's policy forbids code that is made of text."""
    end = time.monotonic() + 15
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def curve(page, column):
    """Return the mean's path in the figure of a column."""
    figure = page.locator("figure", has=page.locator("figcaption", has_text=re.compile(f"^{column}$")))
    return figure.locator("path.s-mean").first.get_attribute("d")


def test_it_loads_and_shows_a_prediction_with_both_parts(open_page):
    """Look at the page as it opens."""
    page = open_page("#model=rent")
    expect(page.locator("#title")).to_have_text("rent")
    assert 300 < number(page) < 2500
    expect(page.locator("#interval")).to_contain_text("90 % between")
    expect(page.locator("#parts")).to_contain_text("noise (aleatoric)")
    expect(page.locator("#unlike")).to_contain_text("like the training rows")
    assert (
        page.locator("#shape path.f-total").count() == 1 and page.locator("#shape path.f-noise").count() == 1
    )
    assert page.locator("#curve-list figure").count() == 4
    assert page.locator("#drivers-lists > div").count() == 3


def test_a_slider_moves_the_numbers_the_curves_and_the_link(open_page):
    """Move a slider, and open the link elsewhere."""
    page = open_page("#model=rent")
    before, drawn = number(page), curve(page, "city")
    slider = page.get_by_label("size, slider")
    box = slider.bounding_box()
    page.mouse.click(box["x"] + 0.8 * box["width"], box["y"] + box["height"] / 2)
    expect(page.locator("#mean")).not_to_have_text(str(round(before)))
    until(lambda: curve(page, "city") != drawn)
    until(lambda: number(page) > before + 100)
    until(lambda: "c.size=" in page.evaluate("location.hash"))
    # Whoever is sent the link sees the same.
    shared = open_page(page.evaluate("location.hash"))
    until(lambda: number(shared) == number(page))
    shared.get_by_role("button", name="Typical row").click()
    expect(shared.locator("#mean")).not_to_have_text(page.locator("#mean").inner_text())


def test_outside_the_training_range_it_says_so_and_grows_less_sure(open_page):
    """Type a size that no flat has."""
    page = open_page("#model=rent")
    page.get_by_label("size", exact=True).fill("1000")
    expect(page.locator("#unlike")).to_contain_text("far from the training rows")
    expect(page.get_by_text("Outside the training range, 20")).to_be_visible()
    expect(page.locator(".verdict")).to_contain_text("do not rely on this")


def test_what_the_server_refuses_is_shown_at_the_field_and_goes_away(open_page):
    """Type what is no date, then a date."""
    page = open_page("#model=rent")
    page.get_by_label("built", exact=True).fill("someday")
    expect(page.locator("#alert")).to_contain_text("built")
    expect(page.get_by_label("built", exact=True)).to_have_attribute("aria-invalid", "true")
    page.get_by_label("built", exact=True).fill("2001-05-01")
    expect(page.locator("#alert")).to_be_hidden()
    expect(page.get_by_label("built", exact=True)).to_have_attribute("aria-invalid", "false")


def test_everything_can_be_done_with_keys(open_page):
    """Go through the page without a mouse, and look for what has no name."""
    page = open_page("#model=rent")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the prediction"
    page.get_by_label("size, slider").focus()
    before = number(page)
    for _ in range(15):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#mean")).not_to_have_text(f"{before:.0f}")
    until(lambda: number(page) > before)
    page.get_by_label("city", exact=True).focus()
    page.keyboard.type("Ch")
    expect(page.get_by_label("city", exact=True)).to_have_value("Chur")
    # A summary for those who hear the page; tables for those who cannot read pictures.
    expect(page.locator("#status")).to_contain_text("rent:")
    summary = page.locator("figure summary").first
    summary.focus()
    page.keyboard.press("Enter")
    table = page.locator("figure details[open] table")
    until(lambda: table.locator("tbody tr").count() > 2)
    # What is open stays open, with new numbers, while values change.
    old = table.inner_text()
    page.get_by_label("city", exact=True).select_option("Genf")
    until(lambda: table.inner_text() != old)
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, input, select, svg[role=img]')]"
        ".filter(e => !(e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim()))"
        ".map(e => e.outerHTML)"
    )
    assert unnamed == []


def test_a_table_comes_back_least_sure_first_and_its_rows_can_be_opened(open_page, folder):
    """Predict a file, open a row, download and sort."""
    page = open_page("#model=rent")
    page.set_input_files("#file", folder / "flats.csv")
    rows = page.locator("#table-result tbody tr")
    expect(rows.first).to_be_visible()
    assert rows.count() == 200
    head = [text.strip() for text in page.locator("#table-result thead th").all_inner_texts()]
    at = head.index("deviation")
    spread = [float(rows.nth(i).locator("td").nth(at).inner_text()) for i in range(20)]
    assert spread == sorted(spread, reverse=True)
    mean = rows.first.locator("td").nth(head.index("mean")).inner_text()
    rows.first.locator("button").click()
    until(lambda: abs(number(page) - float(mean)) < 1)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download all as CSV").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert len(lines) == 201 and lines[0].startswith("mean,std,")
    page.get_by_role("button", name="mean", exact=True).click()
    expect(page.locator("#table-result th", has_text=re.compile("^mean"))).to_have_attribute(
        "aria-sort", "descending"
    )


def test_a_table_that_is_wrong_is_refused_with_the_reason(open_page, tmp_path):
    """Give a file without one of the columns."""
    page = open_page("#model=rent")
    (tmp_path / "bad.csv").write_text("size,city,balcony\n50,Bern,true\n")
    page.set_input_files("#file", tmp_path / "bad.csv")
    expect(page.locator("#table-alert")).to_contain_text("bad.csv: column `built` is missing")


def test_classes_have_probabilities_and_curves_of_the_one_that_is_chosen(open_page):
    """Choose a class, then the other model."""
    page = open_page("#model=species")
    expect(page.locator("#interval")).to_contain_text("with probability")
    assert page.locator(".classes > div").count() == 3
    page.get_by_label("Curves of").select_option(label="setosa")
    expect(page.locator("#curves-title")).to_have_text("Probability of setosa along each column")
    page.get_by_label("petal", exact=True).fill("1.5")
    expect(page.locator("#mean")).to_have_text("setosa")
    page.get_by_label("Model").select_option("rent")
    expect(page.locator("#title")).to_have_text("rent")
    expect(page.locator("#interval")).to_contain_text("between")


def test_the_prediction_stays_beside_the_form_and_covers_nothing_else(open_page):
    """Scroll down to the table."""
    page = open_page("#model=rent")
    page.locator("#table").scroll_into_view_if_needed()
    prediction, curves = (page.locator(name).bounding_box() for name in ("#prediction", "#curves"))
    assert prediction["y"] + prediction["height"] <= curves["y"]


@pytest.mark.parametrize("dark", [False, True])
def test_a_narrow_screen_has_no_sideways_scroll_and_a_dark_one_is_dark(open_page, dark):
    """Open the page on a telephone, by day and by night."""
    page = open_page(
        "#model=rent", viewport={"width": 375, "height": 800}, color_scheme="dark" if dark else "light"
    )
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    red = int(re.search(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor")).group())
    assert red < 60 if dark else red > 200
