//! Chance for generated data: the same for the same key, on every machine and in every run. And texts of values that are made of it.

/// A generator of chance (SplitMix64).
pub struct Chance(u64);

impl Chance {
    /// The one of a row: by its table and its key, so that a row does not depend on the rows around it.
    pub fn of(table: u64, key: u64) -> Self {
        Chance(table.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ key.wrapping_mul(0xd1b5_4a32_d192_ed03))
    }

    /// Any number.
    pub fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from low to high, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next_number() % (high - low + 1)
    }

    /// One of these.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.next_number() % of.len() as u64) as usize]
    }

    /// Some of these words.
    pub fn words(&mut self, of: &[&str], count: usize) -> String {
        (0..count).map(|_| self.one(of)).collect::<Vec<_>>().join(" ")
    }
}

/// A number of hundredths, with two digits of fraction.
pub fn decimal(hundredths: i64) -> String {
    let sign = if hundredths < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", hundredths.abs() / 100, hundredths.abs() % 100)
}

/// A day since 1970-01-01 as a date (Hinnant's civil_from_days).
pub fn date(day: i64) -> String {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{:02}", of_year - (153 * shifted_month + 2) / 5 + 1)
}

/// Milliseconds since 1970-01-01 as a timestamp.
pub fn timestamp(milliseconds: i64) -> String {
    const DAY: i64 = 86_400_000;
    let of_day = milliseconds.rem_euclid(DAY);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    format!(
        "{} {hour:02}:{minute:02}:{:02}.{:03}",
        date(milliseconds.div_euclid(DAY)),
        of_day / 1000 % 60,
        of_day % 1000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(8035), "1992-01-01");
        assert_eq!(date(8035 + 2406 - 1), "1998-08-02");
        assert_eq!(date(9298), "1995-06-17");
        assert_eq!(date(59), "1970-03-01");
    }

    #[test]
    fn timestamps_are_of_the_day_before_and_after_the_epoch() {
        assert_eq!(timestamp(-1), "1969-12-31 23:59:59.999");
        assert_eq!(timestamp(1_436_918_400_000 + 3_723_045), "2015-07-15 01:02:03.045");
    }
}
