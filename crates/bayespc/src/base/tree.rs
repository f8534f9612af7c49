//! Sums along a fixed binary tree, so that neither who adds nor in which order can change a bit.
//!
//! ```text
//! leaf k           what chunk k says
//! node (h, i)      leaves i·2ʰ … (i+1)·2ʰ − 1,  always as  node (h−1, 2i) ⊕ node (h−1, 2i+1)
//! total            the largest nodes of leaves 0 … n − 1, from left to right
//! ```
//!
//! A node is made only when both halves are there. What is added first depends on the leaves alone.

use std::collections::BTreeMap;
use std::ops::Range;

/// Height and place of a node.
pub(crate) type Place = (u32, u64);

/// Nodes without a sibling so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tree {
    nodes: BTreeMap<Place, Vec<f64>>,
}

/// How the numbers of a right half join those of the left.
pub(crate) type Join = fn(&mut Vec<f64>, &[f64]);

/// What is wrong with leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cover {
    /// These are not there.
    Missing(Range<u64>),
    /// This one is there twice.
    Twice(u64),
}

impl Tree {
    /// Add a node, and join it with its sibling if that is there, and so on upwards.
    pub(crate) fn insert(&mut self, place: Place, values: Vec<f64>, join: Join) -> Result<(), Cover> {
        let (mut place, mut values) = (place, values);
        loop {
            if self.nodes.contains_key(&place) {
                return Err(Cover::Twice(place.1 << place.0));
            }
            let (height, i) = place;
            let Some(sibling) = self.nodes.remove(&(height, i ^ 1)) else { break };
            values = if i % 2 == 0 { joined(values, &sibling, join) } else { joined(sibling, &values, join) };
            place = (height + 1, i / 2);
        }
        self.nodes.insert(place, values);
        Ok(())
    }

    /// Nodes without a sibling.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (Place, &[f64])> {
        self.nodes.iter().map(|(place, values)| (*place, values.as_slice()))
    }

    /// The sum of leaves 0..n; none of no leaves.
    pub(crate) fn total(self, n: u64, join: Join) -> Result<Option<Vec<f64>>, Cover> {
        let mut by_start: Vec<(Range<u64>, Vec<f64>)> = self
            .nodes
            .into_iter()
            .map(|((height, i), values)| (i << height..(i + 1) << height, values))
            .collect();
        by_start.sort_by_key(|(leaves, _)| leaves.start);
        let (mut sum, mut end): (Option<Vec<f64>>, u64) = (None, 0);
        for (leaves, values) in by_start {
            if leaves.start > end {
                return Err(Cover::Missing(end..leaves.start));
            }
            if leaves.start < end {
                return Err(Cover::Twice(leaves.start));
            }
            end = leaves.end;
            sum = Some(match sum {
                Some(sum) => joined(sum, &values, join),
                None => values,
            });
        }
        if end < n { Err(Cover::Missing(end..n)) } else { Ok(sum) }
    }
}

fn joined(mut left: Vec<f64>, right: &[f64], join: Join) -> Vec<f64> {
    join(&mut left, right);
    left
}

/// Numbers that add up one by one.
#[expect(clippy::ptr_arg, reason = "one kind of join among others, which may lengthen the left")]
pub(crate) fn add(left: &mut Vec<f64>, right: &[f64]) {
    left.iter_mut().zip(right).for_each(|(a, b)| *a += b);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::seq::SliceRandom;

    use super::*;
    use crate::base::random::stream;

    fn leaf(k: u64) -> Vec<f64> {
        vec![(k as f64 + 0.1).ln(), (0.3 * k as f64).sin() * 1e8]
    }

    fn total_in(order: &[u64], n: u64) -> Vec<f64> {
        let mut tree = Tree::default();
        for &k in order {
            tree.insert((0, k), leaf(k), add).unwrap();
        }
        tree.total(n, add).unwrap().unwrap()
    }

    proptest! {
        #[test]
        fn no_order_and_no_grouping_changes_a_bit(n in 1u64..200, seed: u64, groups in 1usize..9) {
            let mut order: Vec<u64> = (0..n).collect();
            let expected = total_in(&order, n);
            order.shuffle(&mut stream(seed, 0));
            prop_assert_eq!(&total_in(&order, n), &expected);
            // Each group adds up what it can by itself; then the groups come together.
            let mut all = Tree::default();
            for group in order.chunks(order.len().div_ceil(groups)) {
                let mut own = Tree::default();
                for &k in group {
                    own.insert((0, k), leaf(k), add).unwrap();
                }
                for (place, values) in own.nodes() {
                    all.insert(place, values.to_vec(), add).unwrap();
                }
            }
            prop_assert_eq!(&all.total(n, add).unwrap().unwrap(), &expected);
        }
    }

    #[test]
    fn leaves_that_are_missing_or_there_twice_are_named() {
        let tree = |leaves: &[u64]| {
            let mut tree = Tree::default();
            leaves.iter().try_for_each(|&k| tree.insert((0, k), leaf(k), add)).map(|()| tree)
        };
        assert_eq!(tree(&[0, 3]).unwrap().total(4, add), Err(Cover::Missing(1..3)));
        assert_eq!(tree(&[0, 1]).unwrap().total(5, add), Err(Cover::Missing(2..5)));
        assert_eq!(tree(&[2, 2]), Err(Cover::Twice(2)));
        assert_eq!(tree(&[0, 1, 1]).unwrap().total(2, add), Err(Cover::Twice(1)));
        assert_eq!(tree(&[]).unwrap().total(0, add), Ok(None));
    }
}
