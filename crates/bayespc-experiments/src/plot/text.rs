//! How wide text will be and where to break it, without knowing the reader's font.
//!
//! Widths are those of DejaVu Sans, the widest face in common use, rounded up by character class; in Arial or
//! Helvetica text is about a tenth narrower.

/// Font size of tick labels and legends, pixels.
pub(super) const SMALL: f64 = 13.0;
/// Font size of axis labels, pixels.
pub(super) const MEDIUM: f64 = 14.0;
/// Font size of titles, pixels.
pub(super) const LARGE: f64 = 15.0;
/// Distance between lines of text, in font sizes.
pub(super) const LEADING: f64 = 1.25;

/// Estimated width of one line of text, pixels.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.31,
            ' ' | 'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' => 0.37,
            'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.92,
            '⁰'..='⁹' | '¹' | '²' | '³' | '⁻' => 0.40,
            c if c.is_ascii_uppercase() => 0.72,
            c if c.is_ascii() => 0.64,
            // Greek, mathematical signs: like wide letters; beyond them (CJK, emoji): a full square.
            c if (c as u32) < 0x2E80 => 0.84,
            _ => 1.05,
        })
        .sum();
    em * size
}

/// Break text into at most `max_lines` lines no wider than `limit`: between words where possible, inside a
/// word where not; what does not fit ends in an ellipsis.
pub(super) fn wrap(text: &str, size: f64, limit: f64, max_lines: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let joined = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if width(&joined, size) <= limit {
            line = joined;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            line.push(c);
            if width(&line, size) > limit && line.chars().count() > 1 {
                line.pop();
                lines.push(std::mem::replace(&mut line, c.to_string()));
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    if lines.len() > max_lines {
        lines.truncate(max_lines);
        if let Some(last) = lines.last_mut() {
            while !last.is_empty() && width(last, size) + width("…", size) > limit {
                last.pop();
            }
            last.push('…');
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_keeps_every_word_and_the_limit() {
        let text = "root mean square error in original units, averaged over twenty splits";
        let lines = wrap(text, SMALL, 150.0, 10);
        assert!(lines.len() > 2);
        assert_eq!(lines.join(" "), text);
        assert!(lines.iter().all(|line| width(line, SMALL) <= 150.0), "{lines:?}");
    }

    #[test]
    fn a_word_that_is_too_long_is_broken_and_the_rest_elided() {
        let lines = wrap(&"x".repeat(200), SMALL, 100.0, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].ends_with('…'));
        assert!(lines.iter().all(|line| width(line, SMALL) <= 100.0));
    }
}
