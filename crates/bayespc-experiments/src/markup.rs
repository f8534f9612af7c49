//! Text made safe for SVG and HTML, both of which the readers parse as markup.

/// Text safe inside HTML and XML, in content and in attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        for c in printable(line).chars() {
            match c {
                '&' => escaped.push_str("&amp;"),
                '<' => escaped.push_str("&lt;"),
                '>' => escaped.push_str("&gt;"),
                '"' => escaped.push_str("&quot;"),
                '\'' => escaped.push_str("&#39;"),
                c => escaped.push(c),
            }
        }
        escaped.push_str(end);
    }
    escaped
}

/// Text without the characters XML forbids; line breaks and tabs become spaces.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .filter_map(|c| match c {
            '\n' | '\r' | '\t' => Some(' '),
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => None,
            c => Some(c),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_xml_forbids_are_dropped() {
        assert_eq!(printable("a\u{0}b\tc\u{1b}d"), "ab cd");
    }
}
