//! A hash for short texts of a file the user chose to read: fast, and the same in every run.

/// Multiplies and turns, eight bytes at a time.
pub(super) fn hash(text: &str) -> u64 {
    let mix = |sum: u64, word: u64| (sum.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    let sum = words.iter().fold(0, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let sum = mix(sum, u64::from_le_bytes(last) ^ ((text.len() as u64) << 56));
    // A product leaves its low bits poor.
    sum ^ (sum >> 32)
}
