//! A text is a bag of words, each of which adds to one of k inputs, up or down.
//!
//! ```text
//! x_j = Σ over words w with h(w) mod k = j of s(w) / √(number of words),   s(w) = ±1 by the highest bit of h(w)
//! ```
//!
//! h is 64-bit FNV-1a of the word in lower case. Words that share an input cancel as often as they add, so that
//! products of two texts are right on average (Weinberger et al. 2009). A missing or empty text is all zeros.

use serde::{Deserialize, Serialize};

use super::sink::Sink;
use super::{Cells, Missing};
use crate::Result;

/// Most inputs of one text: no more words are told apart than have ever been counted.
pub(super) const MOST: usize = 1 << 20;

/// How a text becomes inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct HashCoding {
    /// Number of inputs, k.
    pub inputs: usize,
}

/// A coding as a file has it, of which nothing is known.
#[derive(Deserialize)]
struct Written {
    inputs: usize,
}

impl TryFrom<Written> for HashCoding {
    type Error = String;

    fn try_from(Written { inputs }: Written) -> std::result::Result<Self, String> {
        if (1..=MOST).contains(&inputs) {
            Ok(Self { inputs })
        } else {
            Err(format!("a text becomes {inputs} inputs, which must be 1 to {MOST}"))
        }
    }
}

impl HashCoding {
    pub(super) fn names(&self, column: &str) -> Vec<String> {
        (1..=self.inputs).map(|k| format!("{column}#{k}")).collect()
    }

    pub(super) fn encode(&self, cells: &Cells<'_>, sink: &mut Sink<'_>) -> Result<()> {
        let mut inputs = vec![0.0; self.inputs];
        for i in 0..cells.len() {
            let Some(text) = cells.column.text(i) else {
                if sink.policy == Missing::Error {
                    return Err(cells.missing(i));
                }
                continue;
            };
            inputs.fill(0.0);
            let mut count: f64 = 0.0;
            for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
                let hash = fnv1a(word.to_lowercase().as_bytes());
                let sign = if hash >> 63 == 0 { 1.0 } else { -1.0 };
                inputs[(hash % self.inputs as u64) as usize] += sign;
                count += 1.0;
            }
            for (k, input) in inputs.iter().enumerate() {
                sink.set(k, i, if count > 0.0 { input / count.sqrt() } else { 0.0 });
            }
        }
        Ok(())
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_speaks_of_no_input_or_of_too_many_is_refused() {
        let read = |inputs: usize| serde_json::from_str::<HashCoding>(&format!("{{\"inputs\":{inputs}}}"));
        assert_eq!(read(32).unwrap(), HashCoding { inputs: 32 });
        assert!(read(0).is_err() && read(MOST + 1).is_err() && read(usize::MAX).is_err());
    }

    /// From the authors' test vectors (Fowler, Noll, Vo).
    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
