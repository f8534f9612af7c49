//! A hash for short texts of a file the user chose to read: fast, and the same in every run.

use std::hash::{BuildHasherDefault, Hasher};

/// Builds [`Mixer`]s.
pub(super) type Quick = BuildHasherDefault<Mixer>;

/// Multiplies and turns, eight bytes at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mixer(u64);

impl Mixer {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(last) ^ ((bytes.len() as u64) << 56));
    }

    fn finish(&self) -> u64 {
        // The table takes its place from the low bits, which a product leaves poor.
        self.0 ^ (self.0 >> 32)
    }
}
