"""Small tables as people have them, each with an oddity, and what should become of them.

    python scripts/hostile_tables.py FOLDER

writes the tables and `tables.json`: for each its file, target, further options of `bayespc fit`, the exit
code, and words that must be in what is said. Tests of the command and of the Python package go through the
same list. Only the standard library is used, and nothing is left to chance.
"""

import gzip
import io
import json
import sys
import zipfile
from pathlib import Path

CITIES = ["Aarau", "Bern", "Chur"]


def flats(rows: int = 24) -> list[dict[str, str]]:
    """Rows of a table that is easy to learn."""
    return [
        {
            "size": f"{40 + i * 37 % 61}.5",
            "age": str(i * 53 % 29),
            "city": CITIES[i % 3],
            "new": str(i % 2 == 0).lower(),
            "rent": f"{1000 + (i * 37 % 61) * 12.25 + i % 3:.2f}",
        }
        for i in range(rows)
    ]


def text(rows: list[dict[str, str]], delimiter: str = ",", end: str = "\n") -> str:
    """CSV, with quotes where they are needed."""

    def cell(value: str) -> str:
        if any(c in value for c in (delimiter, '"', "\n")):
            return '"' + value.replace('"', '""') + '"'
        return value

    lines = [list(rows[0])] + [list(row.values()) for row in rows]
    return "".join(delimiter.join(map(cell, line)) + end for line in lines)


def changed(column: str, change, rows: int = 24) -> list[dict[str, str]]:
    """Return the rows with a column made anew from its row number and cell."""
    return [{**row, column: change(i, row.get(column, ""))} for i, row in enumerate(flats(rows))]


def german(number: str) -> str:
    """Write a number with a comma for decimals and points between thousands."""
    return f"{float(number):,.2f}".translate(str.maketrans(",.", ".,"))


def grouped(number: str) -> str:
    """Write a number with commas between thousands."""
    return f"{float(number):,.2f}"


def day(i: int) -> tuple[int, int, int]:
    """Return year, month and day of a row."""
    return 2000 + i, i % 12 + 1, i % 28 + 1


def workbook(rows: list[dict[str, str]]) -> bytes:
    """Return the least that makes an .xlsx file."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    doc = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    pkg = "http://schemas.openxmlformats.org/package/2006"
    cells = ""
    for i, line in enumerate([list(rows[0])] + [list(row.values()) for row in rows]):
        cells += f'<row r="{i + 1}">'
        for j, value in enumerate(line):
            place = f"{chr(65 + j)}{i + 1}"
            try:
                cells += f'<c r="{place}"><v>{float(value)}</v></c>'
            except ValueError:
                cells += f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
        cells += "</row>"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        link = (
            f'<Relationships xmlns="{pkg}/relationships">'
            f'<Relationship Id="r1" Type="{doc}/{{}}" Target="{{}}"/></Relationships>'
        )
        file.writestr("[Content_Types].xml", f'<Types xmlns="{pkg}/content-types"/>')
        file.writestr("_rels/.rels", link.format("officeDocument", "xl/workbook.xml"))
        file.writestr("xl/_rels/workbook.xml.rels", link.format("worksheet", "worksheets/sheet1.xml"))
        sheets = '<sheets><sheet name="Flats" sheetId="1" r:id="r1"/></sheets>'
        file.writestr("xl/workbook.xml", f'<workbook xmlns="{main}" xmlns:r="{doc}">{sheets}</workbook>')
        file.writestr(
            "xl/worksheets/sheet1.xml",
            f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>',
        )
    return out.getvalue()


def json_lines(rows: list[dict[str, str]]) -> str:
    """Return a JSON object per row, with numbers and booleans as such."""

    def value(cell: str):
        try:
            return float(cell)
        except ValueError:
            return {"true": True, "false": False}.get(cell, cell)

    return "".join(json.dumps({key: value(cell) for key, cell in row.items()}) + "\n" for row in rows)


TABLES: list[tuple[str, bytes, dict]] = []


def table(
    name: str, content: str | bytes, target: str = "rent", options: str = "", code: int = 0, says=()
) -> None:
    """Add a table to the list, with what should become of it."""
    bytes_ = content.encode() if isinstance(content, str) else content
    TABLES.append(
        (name, bytes_, {"target": target, "options": options.split(), "code": code, "says": list(says)})
    )


# Numbers as people write them.
table("decimal_commas.csv", text([{k: v.replace(".", ",") for k, v in row.items()} for row in flats()], ";"))
table("thousands.csv", text(changed("rent", lambda _, x: grouped(x))), says=["RMSE"])
table("german_prices.csv", text(changed("rent", lambda _, x: german(x)), ";"), says=["RMSE"])
table(
    "swiss_prices.csv",
    text(changed("rent", lambda _, x: "CHF " + grouped(x).replace(",", "'"))),
    says=["RMSE"],
)
table("euros.csv", text(changed("rent", lambda _, x: f"€{grouped(x)}")), says=["RMSE"])
table("dollars_behind.csv", text(changed("rent", lambda i, x: f"{x} $" if i else x)), says=["RMSE"])
table("percent.csv", text(changed("age", lambda _, x: f"{x} %")))
table("losses.csv", text(changed("age", lambda i, x: f"({x})" if i % 2 else x)))
table("unicode_minus.csv", text(changed("age", lambda i, x: f"−{x}" if i % 2 else x)))
table(
    "ambiguous_thousands.csv",
    text(changed("age", lambda i, _: f"{i + 1},{i * 37 % 900 + 100}")),
    says=["--column"],
)
table("blanks_around.csv", text(changed("age", lambda _, x: f"  {x} ")))
table("hexadecimal.csv", text(changed("age", lambda i, _: hex(i % 3))))
table("huge_and_tiny.csv", text(changed("age", lambda i, _: f"{i + 1}e{i - 12}")))
# Dates and times.
table(
    "iso_dates.csv",
    text(changed("built", lambda i, _: "{}-{:02}-{:02}".format(*day(i)))),
    says=["built", "time"],
)
table(
    "german_dates.csv",
    text(changed("built", lambda i, _: "{2}.{1}.{0}".format(*day(i)))),
    says=["built", "time"],
)
table(
    "american_dates.csv",
    text(changed("built", lambda i, _: "{1}/{2}/{0}".format(*day(i)))),
    says=["built", "time"],
)
table(
    "ambiguous_dates.csv",
    text(changed("built", lambda i, _: f"{i % 12 + 1}/{i % 11 + 1}/2024")),
    says=["DD/MM/YYYY"],
)
table(
    "instants.csv",
    text(changed("seen", lambda i, _: f"2024-01-{i + 1:02}T{i:02}:30:00+02:00")),
    says=["seen", "time"],
)
table("clocks.csv", text(changed("seen", lambda i, _: f"{i:02}:{i * 7 % 60:02}")), says=["seen", "time"])
# Files.
table("tabs.tsv", text(flats(), "\t"))
table("pipes.txt", text(flats(), "|"))
table("byte_order_mark.csv", b"\xef\xbb\xbf" + text(flats()).encode())
table("windows_lines.csv", text(flats(), end="\r\n"))
table("old_mac_lines.csv", text(flats(), end="\r"))
table(
    "utf_16.csv",
    text(changed("city", lambda i, _: ["Zürich", "Genève"][i % 2])).encode("utf-16"),
    says=["UTF-16"],
)
table(
    "latin_1.csv",
    text(changed("city", lambda i, _: ["Zürich", "Genève"][i % 2])).encode("latin-1"),
    says=["Latin-1"],
)
table("packed.csv.gz", gzip.compress(text(flats()).encode(), mtime=0))
table("lines.jsonl", json_lines(flats()))
table("sheet.xlsx", workbook(flats()))
table("trailing_delimiter.csv", text(flats(), end=",\n"))
table("no_last_line_end.csv", text(flats()).rstrip("\n"))
# Columns and cells.
table(
    "odd_names.csv",
    text(
        [
            {"größe (m²)": r["size"], 'say "hi", you': r["age"], "🏠": r["city"], "rent": r["rent"]}
            for r in flats()
        ]
    ),
)
table("lines_in_cells.csv", text(changed("city", lambda i, _: ["a\nb", 'say "x", please'][i % 2])))
table("identifier.csv", text(changed("id", lambda i, _: f"F-{i:04}")), says=["id", "identifier"])
table(
    "free_text.csv",
    text(changed("advert", lambda i, _: f"{'sunny ' * (i % 5)}flat {i} near {CITIES[i % 3]} number {i * 7}")),
    says=["advert"],
)
table("constant.csv", text(changed("country", lambda *_: "CH")), says=["country", "constant"])
table("empty_column.csv", text(changed("nothing", lambda *_: "")), says=["nothing", "empty"])
table("holes.csv", text(changed("age", lambda i, x: "" if i % 5 == 0 else x)))
table(
    "markers_of_holes.csv", text(changed("age", lambda i, x: ["NA", "n/a", "?", "null", "NaN", x][min(i, 5)]))
)
table("holes_in_target.csv", text(changed("rent", lambda i, x: "" if i % 5 == 0 else x)), says=["5 rows"])
table("bits_as_target.csv", text(flats()), target="new", says=["accuracy"])
table("words_as_target.csv", text(flats()), target="city", says=["accuracy"])
table(
    "digits_as_target.csv",
    text(changed("grade", lambda i, _: str(i % 3))),
    target="grade",
    says=["--task classification"],
)
table("constant_target.csv", text(changed("rent", lambda *_: "5")), says=["nothing to learn"])
# What cannot be read: row, column and a remedy.
table("empty.csv", "", code=1, says=["empty.csv is empty"])
table("header_only.csv", "size,rent\n", code=1, says=["header_only.csv", "no rows"])
table("one_row.csv", text(flats(1)), code=1, says=["1 row"])
table("two_names_alike.csv", "size,size,rent\n1,2,3\n", code=1, says=["`size`", "another name"])
table("unnamed_column.csv", ",size,rent\n0,1,2\n1,3,4\n", code=1, says=["column 1", "index=False"])
table("short_row.csv", text(flats()) + "1,2\n", code=1, says=["row 25", "2 cells", "5"])
table(
    "comma_in_cell.csv",
    text(flats()) + "1,2,Biel, Bienne,true,3\n",
    code=1,
    says=["row 25", "6 cells", "quotes"],
)
table(
    "open_quote.csv",
    text(flats()) + '1,2,"Bern,true,3\n4,5,Bern,true,6\n',
    code=1,
    says=["row 25", "never closed"],
)
table(
    "title_above.csv",
    "Flats of 2024,,,,\n" + text(flats()),
    code=1,
    says=["column 2", "title above the header"],
)
table(
    "units_below_header.csv",
    text([{"size": "m²", "age": "years", "city": "", "new": "", "rent": "CHF"}, *flats()]),
    code=1,
    says=["row 1", "second line of header", "`CHF`"],
)
table(
    "typing_error.csv",
    text(changed("age", lambda i, x: "1o" if i == 7 else x)),
    code=1,
    says=["row 8", "`age`", "`1o`", "--column"],
)
table(
    "infinite.csv",
    text(changed("age", lambda i, x: "inf" if i == 7 else x)),
    code=1,
    says=["row 8", "`age`", "not finite"],
)
table(
    "damaged_letters.csv",
    text(changed("city", lambda *_: "Zürich"))
    .encode()
    .replace("Zürich".encode(), b"Z\xfcrich", 20)[::1]
    .replace(b"Z\xfcrich", "Zürich".encode(), 10),
    code=1,
    says=["line 12", "UTF-8"],
)
table(
    "two_currencies.csv",
    text(changed("rent", lambda i, x: f"{'€$'[i % 2]}{x}")),
    code=1,
    says=["row 2", "`rent`", "unit", "--column"],
)
table(
    "one_class.csv",
    text(changed("city", lambda *_: "Bern")),
    target="city",
    code=1,
    says=["one class", "`Bern`"],
)
table("broken_line.jsonl", json_lines(flats()) + "{broken\n", code=1, says=["row 25", "JSON"])
table("no_such_target.csv", text(flats()), target="rnet", code=2, says=["did you mean `rent`?"])


def main() -> None:
    """Write them."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content, _ in TABLES:
        (folder / name).write_bytes(content)
    listed = [{"file": name, **expected} for name, _, expected in TABLES]
    (folder / "tables.json").write_text(json.dumps(listed, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
