//! One self-contained HTML page: text, tables, figures and settings, readable offline, on a phone, in the
//! dark and on paper.
//!
//! Everything a caller hands in is escaped, with one exception: the SVG of a figure is embedded as it is and
//! must come from [`crate::plot`].

use std::fmt::Write as _;

use crate::markup::escape;

/// A page.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Heading of the page and name of its tab.
    pub title: String,
    /// One line below the title; may be empty.
    pub subtitle: String,
    /// Parts of the page, listed at its top.
    pub sections: Vec<Section>,
}

/// A part of the page.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading.
    pub heading: String,
    /// Content, from top to bottom.
    pub blocks: Vec<Block>,
}

/// A piece of content.
#[derive(Clone, Debug)]
pub enum Block {
    /// Prose; an empty line starts a new paragraph.
    Text(String),
    /// A table. Columns of numbers are aligned on the right; the first column, if it is words, names the rows.
    Table {
        /// Sentence above the table; may be empty.
        caption: String,
        /// Names of the columns.
        header: Vec<String>,
        /// Cells by row. Short rows are filled with empty cells.
        rows: Vec<Vec<String>>,
        /// (row, column) of cells to set in bold, from 0.
        highlight: Vec<(usize, usize)>,
    },
    /// A chart.
    Figure {
        /// SVG as [`crate::plot`] makes it; embedded unescaped.
        svg: String,
        /// Sentence below the chart, also read to those who cannot see it.
        caption: String,
    },
    /// Text in a fixed-width face, line breaks kept.
    Code(String),
    /// Names with values: settings, versions, timings.
    KeyValues(Vec<(String, String)>),
}

impl Report {
    /// The page as HTML.
    pub fn to_html(&self) -> String {
        let mut page = String::new();
        page.push_str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        page.push_str("<meta name=\"color-scheme\" content=\"light dark\">\n");
        put(
            &mut page,
            format_args!("<title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n", escape(&self.title)),
        );
        put(&mut page, format_args!("<header>\n<h1>{}</h1>\n", escape(&self.title)));
        if !self.subtitle.is_empty() {
            put(&mut page, format_args!("<p class=\"subtitle\">{}</p>\n", escape(&self.subtitle)));
        }
        page.push_str("</header>\n");
        if self.sections.len() > 1 {
            page.push_str("<nav aria-label=\"Contents\">\n<ol>\n");
            for (i, section) in self.sections.iter().enumerate() {
                put(&mut page, format_args!("<li><a href=\"#s{i}\">{}</a></li>\n", escape(&section.heading)));
            }
            page.push_str("</ol>\n</nav>\n");
        }
        page.push_str("<main>\n");
        for (i, section) in self.sections.iter().enumerate() {
            put(
                &mut page,
                format_args!(
                    "<section aria-labelledby=\"s{i}\">\n<h2 id=\"s{i}\">{}</h2>\n",
                    escape(&section.heading)
                ),
            );
            for block in &section.blocks {
                block.write(&mut page);
            }
            page.push_str("</section>\n");
        }
        page.push_str("</main>\n</body>\n</html>\n");
        page
    }
}

impl Block {
    fn write(&self, page: &mut String) {
        match self {
            Self::Text(text) => {
                for paragraph in
                    text.replace("\r\n", "\n").split("\n\n").map(str::trim).filter(|p| !p.is_empty())
                {
                    put(page, format_args!("<p>{}</p>\n", escape(paragraph)));
                }
            }
            Self::Table { caption, header, rows, highlight } => table(page, caption, header, rows, highlight),
            Self::Figure { svg, caption } => {
                let label = escape(caption);
                put(
                    page,
                    format_args!(
                        "<figure>\n<div class=\"chart\" role=\"img\" aria-label=\"{label}\" tabindex=\"0\">\n{svg}</div>\n"
                    ),
                );
                if !caption.is_empty() {
                    put(page, format_args!("<figcaption>{label}</figcaption>\n"));
                }
                page.push_str("</figure>\n");
            }
            Self::Code(code) => {
                put(page, format_args!("<pre tabindex=\"0\"><code>{}</code></pre>\n", escape(code)));
            }
            Self::KeyValues(pairs) => {
                page.push_str("<dl>\n");
                for (key, value) in pairs {
                    put(
                        page,
                        format_args!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(key), escape(value)),
                    );
                }
                page.push_str("</dl>\n");
            }
        }
    }
}

fn table(
    page: &mut String,
    caption: &str,
    header: &[String],
    rows: &[Vec<String>],
    highlight: &[(usize, usize)],
) {
    let columns = rows.iter().map(Vec::len).chain([header.len()]).max().unwrap_or(0);
    let cell = |row: &[String], column: usize| row.get(column).map_or(String::new(), |text| escape(text));
    // A column of missing values is one of numbers that are missing.
    let numeric: Vec<bool> = (0..columns)
        .map(|column| {
            let mut cells = rows.iter().filter_map(|row| row.get(column)).filter(|c| !is_blank(c)).peekable();
            (column > 0 || cells.peek().is_some()) && cells.all(|c| is_number(c))
        })
        .collect();
    let class = |column: usize| if numeric[column] { " class=\"number\"" } else { "" };

    // The caption stands outside the part that scrolls, so that a narrow screen shows all of it.
    let label = if caption.is_empty() { "Table".to_owned() } else { escape(caption) };
    page.push_str(
        "<figure>
",
    );
    if !caption.is_empty() {
        put(
            page,
            format_args!(
                "<figcaption class=\"above\">{label}</figcaption>
"
            ),
        );
    }
    put(
        page,
        format_args!(
            "<div class=\"table\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\">
<table>
"
        ),
    );
    if !header.is_empty() {
        page.push_str("<thead>\n<tr>");
        for column in 0..columns {
            put(page, format_args!("<th scope=\"col\"{}>{}</th>", class(column), cell(header, column)));
        }
        page.push_str("</tr>\n</thead>\n");
    }
    page.push_str("<tbody>\n");
    for (i, row) in rows.iter().enumerate() {
        page.push_str("<tr>");
        for column in 0..columns {
            let text = cell(row, column);
            let text =
                if highlight.contains(&(i, column)) { format!("<strong>{text}</strong>") } else { text };
            if column == 0 && !numeric[0] {
                put(page, format_args!("<th scope=\"row\">{text}</th>"));
            } else {
                put(page, format_args!("<td{}>{text}</td>", class(column)));
            }
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table>\n</div>\n</figure>\n");
}

/// A cell that stands for a missing value.
fn is_blank(cell: &str) -> bool {
    matches!(cell.trim(), "" | "-" | "–" | "—")
}

/// Whether a cell reads as a number, with sign, error, unit of percent or a second number after a slash.
fn is_number(cell: &str) -> bool {
    let cell = cell.trim();
    if ["NaN", "inf", "-inf", "−inf", "∞", "−∞"].contains(&cell) {
        return true;
    }
    let allowed = |c: char| c.is_ascii_digit() || "+-−.,±%×/()eE \u{a0}\u{2009}⁰¹²³⁴⁵⁶⁷⁸⁹⁻".contains(c);
    let first = cell.trim_start_matches(['+', '-', '−', '(', '.', '±']).chars().next();
    first.is_some_and(|c| c.is_ascii_digit()) && cell.chars().all(allowed)
}

fn put(page: &mut String, text: std::fmt::Arguments<'_>) {
    page.write_fmt(text).expect("writing to a String does not fail");
}

const STYLE: &str = include_str!("report.css");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Panel, figure};

    fn page(blocks: Vec<Block>) -> String {
        let section = |heading: &str, blocks| Section { heading: heading.into(), blocks };
        let sections = vec![section("One & only", blocks), section("Two", vec![])];
        Report { title: "T <1>".into(), subtitle: "\"quoted\"".into(), sections }.to_html()
    }

    /// The page as XML: its doctype and void elements aside it is well-formed XML too.
    fn as_xml(html: &str) -> String {
        let mut xml = html.replace("<!DOCTYPE html>\n", "");
        for meta in html.lines().filter(|line| line.starts_with("<meta")) {
            xml = xml.replace(meta, "");
        }
        xml
    }

    #[test]
    fn what_the_caller_writes_is_escaped_everywhere() {
        let evil = "</p><script>alert(1)</script>&\"'";
        let html = page(vec![
            Block::Text(evil.into()),
            Block::Code(evil.into()),
            Block::KeyValues(vec![(evil.into(), evil.into())]),
            Block::Table {
                caption: evil.into(),
                header: vec![evil.into()],
                rows: vec![vec![evil.into()]],
                highlight: vec![(0, 0)],
            },
            Block::Figure { svg: String::new(), caption: evil.into() },
        ]);
        assert!(!html.contains("<script"), "{html}");
        let xml = as_xml(&html);
        let document = roxmltree::Document::parse(&xml).unwrap();
        // As text: paragraph, code, key, value, caption, header, cell, figcaption.
        let texts = document.descendants().filter(|n| n.is_text() && n.text() == Some(evil)).count();
        assert_eq!(texts, 8);
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        let svg = figure(&[Panel::default()], 1, 400, 300).unwrap();
        let html = page(vec![Block::Figure { svg, caption: "A chart".into() }]);
        let without_namespace = html.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for loader in ["http:", "https:", "src=", "url(", "@import", "<link"] {
            assert!(!without_namespace.contains(loader), "{loader}");
        }
        let xml = as_xml(&html);
        let document = roxmltree::Document::parse(&xml).unwrap();
        let chart = document.descendants().find(|n| n.attribute("class") == Some("chart")).unwrap();
        assert_eq!((chart.attribute("role"), chart.attribute("aria-label")), (Some("img"), Some("A chart")));
    }

    #[test]
    fn columns_of_numbers_are_aligned_and_words_name_the_rows() {
        let cells = |row: [&str; 3]| row.map(String::from).to_vec();
        let html = page(vec![Block::Table {
            caption: "RMSE".into(),
            header: cells(["data set", "BPC", "note"]),
            rows: vec![
                cells(["housing", "2.62 ± 0.15", "best"]),
                cells(["yacht", "–", "3"]),
                vec!["wine".into()],
            ],
            highlight: vec![(0, 1)],
        }]);
        assert!(html.contains("<th scope=\"row\">housing</th><td class=\"number\"><strong>2.62 ± 0.15</strong></td><td>best</td>"));
        assert!(html.contains("<th scope=\"col\" class=\"number\">BPC</th><th scope=\"col\">note</th>"));
        assert!(html.contains("<th scope=\"row\">wine</th><td class=\"number\"></td><td></td>"));
    }

    #[test]
    fn numbers_are_told_from_words() {
        for number in
            ["1", "−2.7", "+.05", "98.2 %", "2.62 / −2.71", "1.5×10⁻³", "3e-4", "NaN", "(0.3)", "1,024"]
        {
            assert!(is_number(number), "{number}");
        }
        for word in ["", "yacht", "2 layers", "–", "v1.0", "10 epochs"] {
            assert!(!is_number(word), "{word}");
        }
    }
}
