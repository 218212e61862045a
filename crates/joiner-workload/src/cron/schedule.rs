//! Expressions of five fields: minute, hour, day of the month, month, weekday.

use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::zone::zone;

/// Why an expression says nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{expression:?} is no schedule: {why}")]
pub struct BadSchedule {
    /// The expression.
    pub expression: String,
    /// What is wrong with it.
    pub why: String,
}

/// The numbers that a field of an expression names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    bits: u64,
    /// Whether it was left open: `*`, `?` or `*/1`.
    pub(super) is_open: bool,
}

impl Field {
    pub(super) const fn has(self, number: u32) -> bool {
        number < u64::BITS && self.bits & (1 << number) != 0
    }

    pub(super) const fn is_empty(self) -> bool {
        self.bits == 0
    }
}

/// What a field may name.
struct Kind {
    title: &'static str,
    least: u32,
    most: u32,
    /// Names of numbers, counted from `least`.
    names: &'static [&'static str],
}

const MINUTE: Kind = Kind {
    title: "minute",
    least: 0,
    most: 59,
    names: &[],
};
const HOUR: Kind = Kind {
    title: "hour",
    least: 0,
    most: 23,
    names: &[],
};
const DAY: Kind = Kind {
    title: "day of the month",
    least: 1,
    most: 31,
    names: &[],
};
const MONTH: Kind = Kind {
    title: "month",
    least: 1,
    most: 12,
    names: &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
};
const WEEKDAY: Kind = Kind {
    title: "weekday",
    least: 0,
    most: 6,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

/// When something happens, again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    pub(super) minute: Field,
    pub(super) hour: Field,
    pub(super) day: Field,
    pub(super) month: Field,
    pub(super) weekday: Field,
    /// The zone that the expression itself names.
    pub(super) zone: Option<TimeZone>,
}

impl Schedule {
    /// Reads an expression: numbers, names, lists, ranges and steps in five fields, after an optional
    /// `TZ=…` or `CRON_TZ=…`.
    ///
    /// # Errors
    /// When it does not read like that.
    pub fn parse(expression: &str, zones: &TimeZoneDatabase) -> Result<Self, BadSchedule> {
        parse(expression, zones).map_err(|why| BadSchedule {
            expression: expression.to_owned(),
            why,
        })
    }

    /// Whether a day is one of those that are named: either by its number or its weekday, or by both
    /// where one of them is left open.
    pub(super) const fn has_day(&self, day: u32, weekday: u32) -> bool {
        let (by_day, by_weekday) = (self.day.has(day), self.weekday.has(weekday));
        if self.day.is_open || self.weekday.is_open {
            by_day && by_weekday
        } else {
            by_day || by_weekday
        }
    }
}

fn parse(expression: &str, zones: &TimeZoneDatabase) -> Result<Schedule, String> {
    let (named, fields) = match expression.strip_prefix("CRON_TZ=") {
        Some(rest) => zone_first(rest)?,
        None => match expression.strip_prefix("TZ=") {
            Some(rest) => zone_first(rest)?,
            None => (None, expression),
        },
    };
    // Local is the zone of the trigger, as if nothing was said.
    let named = named.filter(|name| *name != "Local");
    let named = named.map(|name| zone(name, zones)).transpose();
    let zone = named.map_err(|error| error.to_string())?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields.as_slice() else {
        let n = fields.len();
        return Err(format!(
            "it has {n} fields instead of five: minute, hour, day of the month, month, weekday"
        ));
    };
    Ok(Schedule {
        minute: MINUTE.field(minute)?,
        hour: HOUR.field(hour)?,
        day: DAY.field(day)?,
        month: MONTH.field(month)?,
        weekday: WEEKDAY.field(weekday)?,
        zone,
    })
}

fn zone_first(rest: &str) -> Result<(Option<&str>, &str), String> {
    let parts = rest.split_once(' ');
    let (name, fields) = parts.ok_or("nothing follows the time zone")?;
    Ok((Some(name), fields))
}

impl Kind {
    fn field(&self, text: &str) -> Result<Field, String> {
        let mut field = Field {
            bits: 0,
            is_open: false,
        };
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let part = self.part(part)?;
            field.bits |= part.bits;
            field.is_open |= part.is_open;
        }
        Ok(field)
    }

    /// One element of a list: a number, a range, everything, each with a step or without.
    fn part(&self, text: &str) -> Result<Field, String> {
        let title = self.title;
        let steps: Vec<&str> = text.split('/').collect();
        let bounds: Vec<&str> = steps[0].split('-').collect();
        let is_all = matches!(bounds[0], "*" | "?");
        let (first, mut last) = match bounds.as_slice() {
            _ if is_all => (self.least, self.most),
            [one] => (self.number(one)?, self.number(one)?),
            [first, last] => (self.number(first)?, self.number(last)?),
            _ => return Err(format!("{text:?} has too many dashes for a {title}")),
        };
        let step = match steps.as_slice() {
            [_] => 1,
            [_, step] => {
                if bounds.len() == 1 {
                    last = self.most;
                }
                whole(step).ok_or_else(|| format!("{text:?} has no number as its step"))?
            }
            _ => return Err(format!("{text:?} has too many slashes for a {title}")),
        };
        let (least, most) = (self.least, self.most);
        if first < least || last > most {
            return Err(format!(
                "{text:?} is no {title}: it goes from {least} to {most}"
            ));
        }
        if first > last {
            return Err(format!("{text:?} begins after its end; write two ranges"));
        }
        if step == 0 {
            return Err(format!("{text:?} has a step of zero"));
        }
        let numbers = (first..=last).step_by(usize::try_from(step).unwrap_or(usize::MAX));
        Ok(Field {
            bits: numbers.fold(0, |bits, number| bits | 1 << number),
            is_open: is_all && step == 1,
        })
    }

    fn number(&self, text: &str) -> Result<u32, String> {
        let lower = text.to_ascii_lowercase();
        let named = (self.least..)
            .zip(self.names)
            .find(|(_, name)| **name == lower);
        let number = named.map(|(number, _)| number).or_else(|| whole(text));
        number.ok_or_else(|| format!("{text:?} is no {}", self.title))
    }
}

/// Digits, after a plus sign or none.
fn whole(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    // More than that is out of every range.
    plain.then(|| digits.parse().unwrap_or(u32::MAX))
}
