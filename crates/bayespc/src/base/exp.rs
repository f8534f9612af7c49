//! eˣ without branches, so that loops over it become vector instructions.
//!
//! ```text
//! eˣ = 2ⁿ eʳ ,   n = round(x / ln 2) ,   r = x − n ln 2 ,   |r| ≤ ½ ln 2 ,   eʳ by its Taylor polynomial
//! ```
//!
//! Arguments are kept within what a normal number can hold: below, the result is the smallest of them, not 0. Only
//! sums and products are used, never fused: the bits are the same on every machine.

/// Adding and taking away this rounds to an integer and leaves it in the low bits.
const ROUND_F64: f64 = 6_755_399_441_055_744.0; // 1.5 · 2⁵²
const ROUND_F32: f32 = 12_582_912.0; // 1.5 · 2²³

/// ln 2 in two parts, the first with zeros at its end, so that n times it is exact.
const LN2_F64: (f64, f64) = (6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10);
const LN2_F32: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);

/// 1/k! from k = 13 down to 0; the next term is 4·10⁻¹⁸.
const TAYLOR_F64: [f64; 14] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
    1.0,
    1.0,
];

/// The same from k = 7; the next term is 5·10⁻⁹.
const TAYLOR_F32: [f32; 8] = [1.0 / 5_040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];

/// eˣ in double precision.
#[inline(always)]
pub(crate) fn exp_f64(x: f64) -> f64 {
    // Comparisons with x on the else side let NaN through.
    let x = if x < -708.0 { -708.0 } else { x };
    let x = if x > 709.0 { 709.0 } else { x };
    let shifted = x * std::f64::consts::LOG2_E + ROUND_F64;
    let n = shifted - ROUND_F64;
    let r = (x - n * LN2_F64.0) - n * LN2_F64.1;
    let mut sum = TAYLOR_F64[0];
    for &coefficient in &TAYLOR_F64[1..] {
        sum = sum * r + coefficient;
    }
    // The low bits of `shifted` are n; those above fall off.
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    sum * power
}

/// eˣ in single precision.
#[inline(always)]
pub(crate) fn exp_f32(x: f32) -> f32 {
    let x = if x < -87.0 { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND_F32;
    let n = shifted - ROUND_F32;
    let r = (x - n * LN2_F32.0) - n * LN2_F32.1;
    let mut sum = TAYLOR_F32[0];
    for &coefficient in &TAYLOR_F32[1..] {
        sum = sum * r + coefficient;
    }
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    sum * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_exponential_to_a_few_units_in_the_last_place() {
        for k in -70_800..=70_900 {
            let x = f64::from(k) / 100.0 + 1e-3 * f64::from(k % 7);
            let x = x.clamp(-708.0, 709.0);
            let relative = (exp_f64(x) - x.exp()).abs() / x.exp();
            assert!(relative < 4.0 * f64::EPSILON, "{x}: {relative}");
        }
        for k in -8700..=8800 {
            let x = k as f32 / 100.0;
            let relative = (exp_f32(x) - x.exp()).abs() / x.exp();
            assert!(relative < 4.0 * f32::EPSILON, "{x}: {relative}");
        }
    }

    #[test]
    fn beyond_its_range_it_stays_finite_and_nan_stays_nan() {
        assert!(exp_f64(f64::NEG_INFINITY) > 0.0 && exp_f64(f64::NEG_INFINITY) < 1e-300);
        assert!(exp_f64(f64::INFINITY) > 1e300 && exp_f64(f64::INFINITY).is_finite());
        assert!(exp_f64(f64::NAN).is_nan() && exp_f32(f32::NAN).is_nan());
        assert!(exp_f32(-1e30) > 0.0 && exp_f32(1e30).is_finite());
        assert_eq!((exp_f64(0.0), exp_f32(0.0)), (1.0, 1.0));
    }
}
