//! Events after Nexmark's generator: the same proportions, ranges and hot keys, with another generator of chance.
//!
//! Every event is made of its number alone, so that any range of events can be made, and later ones look as earlier ones do.

use std::ops::Range;

use crate::chance::{Chance, timestamp};

/// Of so many events the first is a person, the next three are auctions, the rest are bids.
const GROUP: u64 = 50;
const AUCTIONS: u64 = 3;
const FIRST_ID: u64 = 1000;
const FIRST_CATEGORY: u64 = 10;
const CATEGORIES: u64 = 5;
/// One in so many of its kind is hot: the latest whose number is a multiple of it.
const HOT_EVERY: u64 = 100;
/// Chances that a bid is on a hot auction or through a hot channel, and by a hot bidder, an auction by a hot seller: all but one in so many.
const HOT_AUCTION: u64 = 2;
const HOT_CHANNEL: u64 = 2;
const HOT_BIDDER: u64 = 4;
const HOT_SELLER: u64 = 4;
/// How far back the others reach, and how far ahead of what exists: keys of events to come.
const ACTIVE_PEOPLE: u64 = 1000;
const AUCTIONS_IN_FLIGHT: u64 = 100;
const LEAD: u64 = 10;
/// Channels that are not hot.
const CHANNELS: u64 = 10_000;
/// 2015-07-15, between events, and between the parts of the day in which they happen; so many events are one part.
const FIRST_TIME: i64 = 1_436_918_400_000;
const EVENT_TIME: i64 = 20;
const PART_TIME: i64 = 7 * 3_600_000;
const PART: u64 = 1_000;

const HOT_CHANNELS: [&str; 4] = ["Google", "Facebook", "Baidu", "Apple"];
const STATES: [&str; 6] = ["AZ", "CA", "ID", "OR", "WA", "WY"];
const CITIES: [&str; 10] =
    ["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"];
const FIRST_NAMES: [&str; 6] = ["Ada", "Blaise", "Carl", "Emmy", "Grace", "Kurt"];
const LAST_NAMES: [&str; 6] = ["Gauss", "Hopper", "Lovelace", "Noether", "Pascal", "Turing"];
const WORDS: [&str; 8] = ["chair", "clock", "coin", "lamp", "music box", "picture", "rug", "stamp"];

/// Rows of a relation as CSV, without a header, from the events of these numbers.
pub fn csv(table: &str, events: Range<u64>) -> String {
    let row = |event: u64| match event % GROUP {
        0 => (table == "person").then(|| person(event)),
        at if at <= AUCTIONS => (table == "auction").then(|| auction(event)),
        _ => (table == "bid").then(|| bid(event)),
    };
    events.filter_map(row).map(|row| row + "\n").collect()
}

/// The time of an event: parts of the day, and within each a steady stream.
fn time(event: u64) -> i64 {
    FIRST_TIME + (event / PART) as i64 * PART_TIME + (event % PART) as i64 * EVENT_TIME
}

/// The number of the latest person at an event.
fn last_person(event: u64) -> u64 {
    event / GROUP
}

/// The number of the latest auction at an event.
fn last_auction(event: u64) -> u64 {
    (event / GROUP * AUCTIONS + (event % GROUP).min(AUCTIONS)).saturating_sub(1)
}

/// The latest hot one, or one of the recent ones or of those to come.
fn hot_or_recent(chance: &mut Chance, hot_in: u64, last: u64, hot: u64, recent: u64) -> u64 {
    if chance.between(0, hot_in - 1) > 0 {
        return last / HOT_EVERY * HOT_EVERY + hot;
    }
    let recent = recent.min(last);
    last - recent + chance.between(0, recent + LEAD)
}

/// From 100 to 100,000,000, with equal chances for every order of magnitude.
fn price(chance: &mut Chance) -> u64 {
    let exponent = chance.between(0, 6_000_000) as f64 / 1e6;
    (10_f64.powf(exponent) * 100.0).round() as u64
}

fn person(event: u64) -> String {
    let mut chance = Chance::of(1, event);
    let name = format!("{} {}", chance.one(&FIRST_NAMES), chance.one(&LAST_NAMES));
    let mail = format!("{}@{}.com", chance.one(&WORDS).replace(' ', ""), chance.one(&WORDS).replace(' ', ""));
    let card = (0..4).map(|_| format!("{:04}", chance.between(0, 9999))).collect::<Vec<_>>().join(" ");
    let (city, state, extra) = (chance.one(&CITIES), chance.one(&STATES), chance.words(&WORDS, 3));
    let id = FIRST_ID + last_person(event);
    format!("{id},{name},{mail},{card},{city},{state},{},{extra}", timestamp(time(event)))
}

fn auction(event: u64) -> String {
    let mut chance = Chance::of(2, event);
    let id = FIRST_ID + last_auction(event);
    let (name, description) = (chance.words(&WORDS, 2), chance.words(&WORDS, 4));
    let initial_bid = price(&mut chance);
    let reserve = initial_bid + price(&mut chance);
    // Long enough that about so many auctions are open at a time.
    let open = (AUCTIONS_IN_FLIGHT * GROUP / AUCTIONS) as i64 * EVENT_TIME;
    let expires = time(event) + 1 + chance.between(0, 2 * open as u64) as i64;
    let seller = FIRST_ID + hot_or_recent(&mut chance, HOT_SELLER, last_person(event), 0, ACTIVE_PEOPLE);
    let (category, extra) = (FIRST_CATEGORY + chance.between(0, CATEGORIES - 1), chance.words(&WORDS, 3));
    format!(
        "{id},{name},{description},{initial_bid},{reserve},{},{},{seller},{category},{extra}",
        timestamp(time(event)),
        timestamp(expires)
    )
}

fn bid(event: u64) -> String {
    let mut chance = Chance::of(3, event);
    let auction = FIRST_ID + hot_or_recent(&mut chance, HOT_AUCTION, last_auction(event), 0, AUCTIONS_IN_FLIGHT);
    let bidder = FIRST_ID + hot_or_recent(&mut chance, HOT_BIDDER, last_person(event), 1, ACTIVE_PEOPLE);
    let price = price(&mut chance);
    let page = format!(
        "https://www.nexmark.com/{}/{}/{}/item.htm?query=1",
        chance.one(&["a", "b", "c"]),
        chance.one(&["d", "e", "f"]),
        chance.one(&["g", "h", "i"])
    );
    let (channel, url) = if chance.between(0, HOT_CHANNEL - 1) > 0 {
        (chance.one(&HOT_CHANNELS).to_string(), page)
    } else {
        let number = chance.between(0, CHANNELS - 1);
        // One in ten has no number in its address.
        let url = if chance.between(0, 9) > 0 { format!("{page}&channel_id={number}") } else { page };
        (format!("channel-{number}"), url)
    };
    let extra = chance.words(&WORDS, 2);
    format!("{auction},{bidder},{price},{channel},{url},{},{extra}", timestamp(time(event)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(table: &str, number: usize, events: Range<u64>) -> Vec<String> {
        let text = csv(table, events);
        text.lines().filter_map(|line| line.split(',').nth(number)).map(str::to_string).collect()
    }

    #[test]
    fn of_fifty_events_one_is_a_person_and_three_are_auctions() {
        let count = |table| csv(table, 0..5000).lines().count();
        assert_eq!((count("person"), count("auction"), count("bid")), (100, 300, 4600));
        let ids: Vec<String> = (1000..1300).map(|id| id.to_string()).collect();
        assert_eq!(column("auction", 0, 0..5000), ids);
        assert_eq!(column("person", 0, 0..5000), ids[..100]);
    }

    #[test]
    fn half_of_the_bids_are_on_hot_auctions_and_most_by_hot_bidders() {
        let share = |number: usize, hot: &str| {
            let values = column("bid", number, 0..20_000);
            values.iter().filter(|value| value.ends_with(hot)).count() * 100 / values.len()
        };
        assert!((49..=53).contains(&share(0, "00")), "{}", share(0, "00"));
        assert!((73..=78).contains(&share(1, "01")), "{}", share(1, "01"));
    }

    #[test]
    fn any_range_of_events_is_made_alike() {
        assert_eq!(csv("bid", 0..100) + &csv("bid", 100..300), csv("bid", 0..300));
    }
}
