//! Colours that remain distinct for colour-blind readers (Okabe and Ito, 2008), given out by label.

use super::canvas::Marker;

/// A colour of the Okabe–Ito palette, or grey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// `#0072B2`
    Blue,
    /// `#D55E00`
    Vermillion,
    /// `#009E73`
    Green,
    /// `#CC79A7`
    Purple,
    /// `#E69F00`
    Orange,
    /// `#56B4E9`
    SkyBlue,
    /// `#000000`
    Black,
    /// `#F0E442`; hard to see on white, hence never given out unasked.
    Yellow,
    /// `#6E6E6E`, for what should stay in the background.
    Grey,
}

impl Color {
    /// Red, green, blue.
    pub fn rgb(self) -> (u8, u8, u8) {
        match self {
            Self::Blue => (0x00, 0x72, 0xB2),
            Self::Vermillion => (0xD5, 0x5E, 0x00),
            Self::Green => (0x00, 0x9E, 0x73),
            Self::Purple => (0xCC, 0x79, 0xA7),
            Self::Orange => (0xE6, 0x9F, 0x00),
            Self::SkyBlue => (0x56, 0xB4, 0xE9),
            Self::Black => (0x00, 0x00, 0x00),
            Self::Yellow => (0xF0, 0xE4, 0x42),
            Self::Grey => (0x6E, 0x6E, 0x6E),
        }
    }
}

const CYCLE: [Color; 7] = [
    Color::Blue,
    Color::Vermillion,
    Color::Green,
    Color::Purple,
    Color::Orange,
    Color::SkyBlue,
    Color::Black,
];
const MARKERS: [Marker; 4] = [Marker::Circle, Marker::Square, Marker::Triangle, Marker::Diamond];

/// How the series of one label look, in every chart of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) color: Color,
    pub(super) marker: Marker,
    /// Lines change between solid and dashed when the colours start over.
    pub(super) dashed: bool,
}

/// A series as the palette sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim<'a> {
    pub(super) label: &'a str,
    /// The colour asked for.
    pub(super) color: Option<Color>,
    /// Whether it has points.
    pub(super) marker: bool,
}

/// Looks by label, in order of first appearance.
pub(super) struct Palette {
    looks: Vec<(String, Look)>,
}

impl Palette {
    /// Give each label one look for the whole figure, the first that no other label of its charts has:
    /// labels that never meet in a chart may look alike. A series without label is grey, and a colour asked
    /// for is kept.
    pub(super) fn new(charts: &[Vec<Claim<'_>>]) -> Self {
        // Colours somebody asked for are passed over while others remain.
        let asked: Vec<Color> = charts.iter().flatten().filter_map(|claim| claim.color).collect();
        let free: Vec<Color> = CYCLE.into_iter().filter(|color| !asked.contains(color)).collect();
        let pool = if free.is_empty() { &CYCLE[..] } else { &free[..] };

        let mut palette = Self { looks: Vec::new() };
        // Places in the cycles of colours and of markers, by label.
        let mut places: Vec<(&str, Option<usize>, Option<usize>)> = Vec::new();
        for &Claim { label, .. } in charts.iter().flatten() {
            if places.iter().any(|&(known, ..)| known == label) {
                continue;
            }
            let own = || charts.iter().flatten().filter(|claim| claim.label == label);
            let meets = |other: &str| {
                charts.iter().any(|chart| [label, other].iter().all(|l| chart.iter().any(|c| c.label == *l)))
            };
            let met: Vec<_> = places.iter().filter(|&&(other, ..)| meets(other)).collect();
            let color = own().find_map(|claim| claim.color).or(label.is_empty().then_some(Color::Grey));
            let color_place =
                color.is_none().then(|| first_free(met.iter().filter_map(|&&(_, place, _)| place)));
            let marker_place = own()
                .any(|claim| claim.marker)
                .then(|| first_free(met.iter().filter_map(|&&(_, _, place)| place)));
            places.push((label, color_place, marker_place));
            let place = color_place.unwrap_or(0);
            let look = Look {
                color: color.unwrap_or(pool[place % pool.len()]),
                marker: MARKERS[marker_place.unwrap_or(0) % MARKERS.len()],
                dashed: place / pool.len() % 2 == 1,
            };
            palette.looks.push((label.to_owned(), look));
        }
        palette
    }

    /// The look of a label; grey circles for one that was not announced.
    pub(super) fn look(&self, label: &str) -> Look {
        let found = self.looks.iter().find(|(known, _)| known == label);
        found.map_or(Look { color: Color::Grey, marker: Marker::Circle, dashed: false }, |&(_, look)| look)
    }
}

fn first_free(taken: impl Iterator<Item = usize>) -> usize {
    let taken: Vec<usize> = taken.collect();
    (0..=taken.len()).find(|place| !taken.contains(place)).unwrap_or(taken.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(label: &str) -> Claim<'_> {
        Claim { label, color: None, marker: true }
    }

    #[test]
    fn a_label_keeps_its_look_and_differs_from_those_it_meets() {
        let palette =
            Palette::new(&[vec![claim("a"), claim("b")], vec![claim("c"), claim("b")], vec![claim("d")]]);
        let color = |label| palette.look(label).color;
        assert_ne!(color("a"), color("b"));
        assert_ne!(color("c"), color("b"));
        assert_eq!(color("d"), Color::Blue);
        assert_ne!(palette.look("a").marker, palette.look("b").marker);
    }

    #[test]
    fn a_colour_asked_for_is_not_given_to_another() {
        let asking = Claim { color: Some(Color::Blue), ..claim("b") };
        let palette = Palette::new(&[vec![claim("a"), asking]]);
        assert_eq!(palette.look("b").color, Color::Blue);
        assert_ne!(palette.look("a").color, Color::Blue);
    }

    #[test]
    fn more_labels_than_colours_are_told_apart_by_dashes() {
        let names: Vec<String> = (0..14).map(|i| format!("method {i}")).collect();
        let palette = Palette::new(&[names.iter().map(|name| claim(name)).collect()]);
        for (i, a) in names.iter().enumerate() {
            for b in &names[..i] {
                let (a, b) = (palette.look(a), palette.look(b));
                assert_ne!((a.color, a.dashed), (b.color, b.dashed));
            }
        }
    }
}
