//! Quantiles of the standard normal: the rational approximations of Wichura (1988, AS 241, `PPND16`), with one Newton
//! step in the tails.
//!
//! ```text
//! |p − ½| ≤ 0.425     x = q A(r)/B(r) ,   q = p − ½ ,   r = 0.425² − q²
//! otherwise           |x| = C(r)/D(r) or E(r)/F(r) ,   r = √(−log tail)
//! ```

use super::{normal_cdf, normal_pdf};

/// Numerator and denominator in the middle, lowest power first.
const MIDDLE: [[f64; 8]; 2] = [
    [
        3.387_132_872_796_366_5,
        1.331_416_678_917_843_8e2,
        1.971_590_950_306_551_3e3,
        1.373_169_376_550_946e4,
        4.592_195_393_154_987e4,
        6.726_577_092_700_87e4,
        3.343_057_558_358_813e4,
        2.509_080_928_730_122_7e3,
    ],
    [
        1.0,
        4.231_333_070_160_091e1,
        6.871_870_074_920_579e2,
        5.394_196_021_424_751e3,
        2.121_379_430_158_659_7e4,
        3.930_789_580_009_271e4,
        2.872_908_573_572_194_3e4,
        5.226_495_278_852_854e3,
    ],
];

/// The same in the tails, of √(−log tail) − 1.6.
const TAIL: [[f64; 8]; 2] = [
    [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        2.417_807_251_774_506e-1,
        2.272_384_498_926_918_4e-2,
        7.745_450_142_783_414e-4,
    ],
    [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        6.897_673_349_851e-1,
        1.481_039_764_274_800_8e-1,
        1.519_866_656_361_645_7e-2,
        5.475_938_084_995_345e-4,
        1.050_750_071_644_416_9e-9,
    ],
];

/// The same in the far tails, of √(−log tail) − 5.
const FAR_TAIL: [[f64; 8]; 2] = [
    [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        2.965_605_718_285_049e-1,
        2.653_218_952_657_612_4e-2,
        1.242_660_947_388_078_4e-3,
        2.711_555_568_743_487_6e-5,
        2.010_334_399_292_288_1e-7,
    ],
    [
        1.0,
        5.998_322_065_558_88e-1,
        1.369_298_809_227_358e-1,
        1.487_536_129_085_061_5e-2,
        7.868_691_311_456_133e-4,
        1.846_318_317_510_054_8e-5,
        1.421_511_758_316_446e-7,
        2.044_263_103_389_939_8e-15,
    ],
];

/// Φ⁻¹(p); ∓∞ at 0 and 1, NaN outside.
pub fn normal_quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p == 0.0 || p == 1.0 {
        return if p == 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        return q * ratio(&MIDDLE, 0.425 * 0.425 - q * q);
    }
    let tail = p.min(1.0 - p);
    let r = (-tail.ln()).sqrt();
    let start = if r <= 5.0 { ratio(&TAIL, r - 1.6) } else { ratio(&FAR_TAIL, r - 5.0) };
    // One Newton step on log Φ of the tail removes the last digits of error.
    let (cdf, density) = (normal_cdf(-start), normal_pdf(start));
    let x = if density == 0.0 { start } else { start + cdf / density * (cdf / tail).ln() };
    if q < 0.0 { -x } else { x }
}

fn ratio([numerator, denominator]: &[[f64; 8]; 2], x: f64) -> f64 {
    let polynomial = |coefficients: &[f64; 8]| coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c);
    polynomial(numerator) / polynomial(denominator)
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;

    #[test]
    fn the_distribution_function_takes_it_back_on_both_sides_of_every_joint() {
        let joints = [0.075, (-25.0_f64).exp()];
        let beside = joints.iter().flat_map(|p| [p * (1.0 - 1e-9), *p, p * (1.0 + 1e-9)]);
        for p in beside.chain([1e-300, 1e-100, 1e-20, 0.01, 0.3, 0.5]) {
            assert_relative_eq!(normal_cdf(normal_quantile(p)), p, max_relative = 1e-13);
            if p > 1e-10 {
                assert_relative_eq!(normal_quantile(1.0 - p), -normal_quantile(p), max_relative = 1e-5);
            }
        }
        assert_eq!(normal_quantile(0.5), 0.0);
    }
}
