//! Names that are written nearly alike.

/// The name that is written nearly so, if there is one.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let alike = |other: &str| strsim::jaro_winkler(&name.to_lowercase(), &other.to_lowercase());
    let best = names.map(|other| (alike(other), other)).max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(score, _)| *score > 0.8).map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let names = ["size", "city", "built"];
        assert_eq!(nearest("szie", names.into_iter()), Some("size"));
        assert_eq!(nearest("City", names.into_iter()), Some("city"));
        assert_eq!(nearest("colour", names.into_iter()), None);
    }
}
