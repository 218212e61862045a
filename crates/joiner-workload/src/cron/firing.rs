//! When a schedule fires next, as upstream finds it.
//!
//! The search goes from the largest unit to the smallest: months and days on the calendar, hours and
//! minutes by the seconds that pass. Where clocks change by less than an hour, between full hours or at
//! midnight, it leaves the wall clock by that: a firing may be missed or come a day late. Users see
//! upstream do it, so it is done here.

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::schedule::Schedule;

/// After so many years the search ends.
const YEARS_MAX: i16 = 5;
const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const HOURS_PER_DAY: i8 = 24;
const NOON: i8 = 12;

impl Schedule {
    /// The first firing after `time`, on the clock of `zone` or the one that the expression names. `None`
    /// when it does not fire within five years.
    #[must_use]
    pub fn next_after(&self, time: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let zone = self.zone.as_ref().unwrap_or(zone);
        let fields = [self.minute, self.hour, self.month];
        if fields.iter().any(|field| field.is_empty()) {
            return None;
        }
        let second = Timestamp::from_second(time.as_nanosecond().div_euclid(1_000_000_000) as i64);
        let mut search = Search {
            clock: Clock {
                time: second
                    .ok()?
                    .checked_add(SignedDuration::from_secs(1))
                    .ok()?,
                zone,
            },
            was_cut: false,
        };
        search.run(self)
    }
}

/// A time and what clocks show then.
#[derive(Clone, Copy)]
struct Clock<'z> {
    time: Timestamp,
    zone: &'z TimeZone,
}

impl Clock<'_> {
    fn shows(self) -> DateTime {
        self.zone.to_datetime(self.time)
    }

    fn add_seconds(&mut self, seconds: i64) -> Option<()> {
        self.time = self
            .time
            .checked_add(SignedDuration::from_secs(seconds))
            .ok()?;
        Some(())
    }

    /// Sets the time to one at which clocks show `shown`. Where none does, or two do, it is the one that
    /// the offset around that time gives.
    fn set(&mut self, shown: DateTime) -> Option<()> {
        let guess = Offset::UTC.to_timestamp(shown).ok()?;
        let offset = |time| self.zone.to_offset(time);
        let first = offset(guess).to_timestamp(shown).ok()?;
        self.time = offset(first).to_timestamp(shown).ok()?;
        Some(())
    }

    fn set_to_minute(&mut self) -> Option<()> {
        let seconds = self.time.as_second().div_euclid(MINUTE) * MINUTE;
        self.time = Timestamp::from_second(seconds).ok()?;
        Some(())
    }
}

/// A search on its way.
struct Search<'z> {
    clock: Clock<'z>,
    /// Whether units below the one that moved first were set to their beginning.
    was_cut: bool,
}

/// What became of one unit.
enum Unit {
    /// It is one that the schedule has.
    Fits,
    /// A larger unit has begun anew and must be looked at again.
    Wrapped,
}

impl Search<'_> {
    fn run(&mut self, schedule: &Schedule) -> Option<Timestamp> {
        let last_year = self.clock.shows().year() + YEARS_MAX;
        while self.clock.shows().year() <= last_year {
            if let Unit::Fits = self.month(schedule)?
                && let Unit::Fits = self.day(schedule)?
                && let Unit::Fits = self.hour(schedule)?
                && let Unit::Fits = self.minute(schedule)?
                && let Unit::Fits = self.second()?
            {
                return Some(self.clock.time);
            }
        }
        None
    }

    /// Sets smaller units to their beginning, the first time that any unit moves.
    fn cut(&mut self, to: impl FnOnce(DateTime) -> Option<DateTime>) -> Option<()> {
        if !self.was_cut {
            self.was_cut = true;
            self.clock.set(to(self.clock.shows())?)?;
        }
        Some(())
    }

    fn month(&mut self, schedule: &Schedule) -> Option<Unit> {
        while !schedule.month.has(number(self.clock.shows().month())) {
            self.cut(|shown| shown.date().first_of_month().to_datetime(midnight()).into())?;
            let shown = self.clock.shows();
            self.clock.set(month_later(shown)?)?;
            if self.clock.shows().month() == 1 {
                return Some(Unit::Wrapped);
            }
        }
        Some(Unit::Fits)
    }

    fn day(&mut self, schedule: &Schedule) -> Option<Unit> {
        loop {
            let shown = self.clock.shows();
            let weekday = shown.weekday().to_sunday_zero_offset();
            if schedule.has_day(number(shown.day()), number(weekday)) {
                return Some(Unit::Fits);
            }
            self.cut(|shown| Some(shown.date().to_datetime(midnight())))?;
            let shown = self.clock.shows();
            let tomorrow = shown.date().tomorrow().ok()?;
            self.clock.set(tomorrow.to_datetime(shown.time()))?;
            // Where midnight was skipped or came twice, the hour is another one now.
            let hour = self.clock.shows().hour();
            if hour > NOON {
                self.clock
                    .add_seconds(i64::from(HOURS_PER_DAY - hour) * HOUR)?;
            } else if hour > 0 {
                self.clock.add_seconds(-i64::from(hour) * HOUR)?;
            }
            if self.clock.shows().day() == 1 {
                return Some(Unit::Wrapped);
            }
        }
    }

    fn hour(&mut self, schedule: &Schedule) -> Option<Unit> {
        while !schedule.hour.has(number(self.clock.shows().hour())) {
            self.cut(|shown| {
                let hour = shown.time().with().minute(0).second(0).subsec_nanosecond(0);
                Some(shown.date().to_datetime(hour.build().ok()?))
            })?;
            self.clock.add_seconds(HOUR)?;
            if self.clock.shows().hour() == 0 {
                return Some(Unit::Wrapped);
            }
        }
        Some(Unit::Fits)
    }

    fn minute(&mut self, schedule: &Schedule) -> Option<Unit> {
        while !schedule.minute.has(number(self.clock.shows().minute())) {
            if !self.was_cut {
                self.was_cut = true;
                self.clock.set_to_minute()?;
            }
            self.clock.add_seconds(MINUTE)?;
            if self.clock.shows().minute() == 0 {
                return Some(Unit::Wrapped);
            }
        }
        Some(Unit::Fits)
    }

    /// Schedules fire at the beginning of a minute.
    fn second(&mut self) -> Option<Unit> {
        while self.clock.shows().second() != 0 {
            self.was_cut = true;
            self.clock.add_seconds(1)?;
            if self.clock.shows().second() == 0 {
                return Some(Unit::Wrapped);
            }
        }
        Some(Unit::Fits)
    }
}

/// The same day and time a month later; a day that this month has not is one of the month after it.
fn month_later(shown: DateTime) -> Option<DateTime> {
    let first = shown.date().first_of_month();
    let next = first
        .checked_add(SignedDuration::from_hours(31 * 24))
        .ok()?;
    let days = i64::from(shown.day()) - 1;
    let date = next.first_of_month();
    let date = date
        .checked_add(SignedDuration::from_hours(days * 24))
        .ok()?;
    Some(date.to_datetime(shown.time()))
}

const fn midnight() -> jiff::civil::Time {
    jiff::civil::Time::midnight()
}

fn number(unit: i8) -> u32 {
    u32::try_from(unit).unwrap_or(0)
}
