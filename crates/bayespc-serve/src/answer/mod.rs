//! Predictions by name, for every protocol.
//!
//! | values         | classes                 |                                                            |
//! |----------------|-------------------------|------------------------------------------------------------|
//! | mean, std      | class, probabilities    | what is predicted                                          |
//! | aleatoric_std  | aleatoric_entropy       | noise: more rows would not take it away                    |
//! | epistemic_std  | epistemic_entropy, probability_std | ignorance: more rows would                      |
//! | lower, upper   | entropy                 | the central interval of `level`                            |
//! | quantiles      |                         | on request                                                 |
//! | ood_score      | ood_score               | how unlike the rows learned from; above 1 is unusual       |

mod ask;
mod quantity;

pub use ask::{Answer, answer, likeliest, probability_std};
pub use quantity::{Quantity, Records, csv};
