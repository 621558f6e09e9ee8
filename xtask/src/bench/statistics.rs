//! Medians, ranges and slopes. Pure arithmetic on what was measured.

/// A handful of runs in three numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Summary {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Summary {
    /// Nothing measured is not zero.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let upper = *values.get(values.len() / 2)?;
        let lower = *values.get((values.len() - 1) / 2)?;
        Some(Self {
            median: f64::midpoint(lower, upper),
            least,
            most,
        })
    }
}

/// The line through points by least squares: what a step to the right costs, and what is paid at zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    pub(super) slope: f64,
    pub(super) intercept: f64,
}

impl Line {
    /// Two different places on the x axis are needed.
    pub(super) fn through(points: &[(f64, f64)]) -> Option<Self> {
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count(points);
        let (x_mean, y_mean) = (mean(|point| point.0), mean(|point| point.1));
        let spread: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
        let together: f64 = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
        let slope = together / spread;
        slope.is_finite().then_some(Self {
            slope,
            intercept: y_mean - slope * x_mean,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody measures 2^52 points")]
fn count(points: &[(f64, f64)]) -> f64 {
    points.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_lies_between_the_middle_two() {
        let summary = Summary::of([4.0, 1.0, 2.0, 3.0]);
        assert_eq!(
            summary,
            Some(Summary {
                median: 2.5,
                least: 1.0,
                most: 4.0
            })
        );
        assert_eq!(Summary::of([]), None);
    }

    #[test]
    fn four_round_trips_have_a_slope_of_four() {
        let points = [(0.0, 12.0), (50.0, 212.0), (100.0, 412.0), (200.0, 812.0)];
        assert_eq!(
            Line::through(&points),
            Some(Line {
                slope: 4.0,
                intercept: 12.0
            })
        );
        assert_eq!(Line::through(&[(1.0, 2.0), (1.0, 3.0)]), None);
    }
}
