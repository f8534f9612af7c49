//! The first rows of a file in which some cells may be wrong: what the columns are is told by the others.

use super::guess::Guess;
use super::{Decimal, Kind, Table, Texts, Values, Wish, Wishes};

/// The same wishes, with nothing asked that a cell could fail to be: columns come as texts.
pub(super) fn as_texts(wishes: &Wishes) -> Wishes {
    wishes.keys().map(|name| (name.clone(), Wish::As(Kind::Text))).collect()
}

impl Table {
    /// Columns of texts made what is asked, or what nearly all of their cells are; rows whose cells are not are left
    /// out.
    pub(super) fn settled(mut self, wishes: &Wishes) -> Self {
        let is_comma = |kind: Kind| matches!(kind, Kind::Number(format) if format.decimal == Decimal::Comma);
        let mut commas = self.columns.iter().any(|column| is_comma(column.kind));
        let mut wrong = Vec::new();
        for column in &mut self.columns {
            let suspected = column.suspect.as_ref().map(|suspect| match suspect.expected {
                "date" | "time of day" => Wish::Time,
                _ => Wish::Number,
            });
            let wish = wishes.get(&column.name).copied().or(suspected);
            let (Some(wish), Values::Text(texts)) = (wish, &mut column.values) else { continue };
            let guess = Guess::of_texts(texts);
            commas |= guess.has_decimal_commas();
            column.kind = guess.wished(wish, commas);
            let (mut values, unreadable) = std::mem::replace(texts, Texts::new()).read_as_far(column.kind);
            values.settle();
            column.values = values;
            column.suspect = None;
            wrong.extend(unreadable.into_iter().map(|(i, _)| i));
        }
        self.without(wrong)
    }

    /// The table without these rows, counted from 0, in any order.
    pub(crate) fn without(self, mut rows: Vec<usize>) -> Self {
        if rows.is_empty() {
            return self;
        }
        rows.sort_unstable();
        let kept: Vec<usize> = (0..self.n_rows()).filter(|i| rows.binary_search(i).is_err()).collect();
        self.select_rows(&kept)
    }

    /// The table without these rows of the file, sorted.
    pub(crate) fn without_file_rows<T>(self, rows: &[(usize, T)]) -> Self {
        let is_one = |i: &usize| rows.binary_search_by_key(&self.file_row(*i), |(row, _)| *row).is_ok();
        let own = if rows.is_empty() { Vec::new() } else { (0..self.n_rows()).filter(is_one).collect() };
        self.without(own)
    }

    /// The last row's place in the file, from 1.
    pub(crate) fn last_row(&self) -> usize {
        self.rows.last().copied().unwrap_or(0)
    }

    /// The table without rows that are infinite in this column; the same if there is no such column.
    pub fn finite_in(self, column: &str) -> Self {
        let Ok(Values::Number(values)) = self.column(column).map(|column| &column.values) else {
            return self;
        };
        let infinite = (0..values.len()).filter(|&i| values[i].is_infinite()).collect();
        self.without(infinite)
    }
}
