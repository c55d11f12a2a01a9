//! Data after TPC-H's dbgen: the same tables, key relations and ranges, with texts of our own and another generator of chance.
//!
//! Every row comes from a generator seeded by table and key, so an order of the refresh stream looks as one of the load does.
//! Where a hundredth of the official data would leave a query without rows, what it looks for is made more frequent; those places say so.

use crate::chance::{Chance, date, decimal};

/// How much of the official scale factor 1, in thousandths.
pub const SCALE_THOUSANDTHS: u64 = 10;

const NATIONS: [(&str, u64); 25] = [
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
];
const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];
const SEGMENTS: [&str; 5] = ["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"];
const PRIORITIES: [&str; 5] = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"];
const INSTRUCTIONS: [&str; 4] = ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"];
const MODES: [&str; 7] = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"];
const TYPE_SIZES: [&str; 6] = ["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"];
const TYPE_FINISHES: [&str; 5] = ["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"];
const TYPE_METALS: [&str; 5] = ["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"];
const CONTAINER_SIZES: [&str; 5] = ["SM", "LG", "MED", "JUMBO", "WRAP"];
const CONTAINER_KINDS: [&str; 8] = ["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"];
const COLORS: [&str; 16] = [
    "almond",
    "azure",
    "blush",
    "chocolate",
    "cream",
    "dark",
    "forest",
    "green",
    "honeydew",
    "indian",
    "ivory",
    "lemon",
    "navy",
    "puff",
    "steel",
    "white",
];
const WORDS: [&str; 14] = [
    "carefully",
    "quick",
    "deposits",
    "special",
    "packages",
    "requests",
    "ironic",
    "theodolites",
    "furious",
    "accounts",
    "sleep",
    "pending",
    "final",
    "bold",
];
/// The day that returns and states are about, and the range of order dates, in days since 1970-01-01.
const TODAY: i64 = 9298;
const ORDER_DAY_MIN: i64 = 8035;
const ORDER_DAYS: u64 = 2406;

/// From -999.99 to 9999.99.
fn balance(chance: &mut Chance) -> String {
    decimal(chance.between(0, 1_099_998) as i64 - 99_999)
}

fn phone(chance: &mut Chance, nation: u64) -> String {
    format!("{}-{}-{}-{}", nation + 10, chance.between(100, 999), chance.between(100, 999), chance.between(1000, 9999))
}

/// What comments are made of.
fn comment(chance: &mut Chance) -> String {
    chance.words(&WORDS, 3)
}

fn scaled(of_one: u64) -> u64 {
    of_one * SCALE_THOUSANDTHS / 1000
}

/// Orders of the load.
pub fn orders() -> u64 {
    scaled(1_500_000)
}

fn parts() -> u64 {
    scaled(200_000)
}

fn suppliers() -> u64 {
    scaled(10_000)
}

fn customers() -> u64 {
    scaled(150_000)
}

fn retail_price(part: u64) -> i64 {
    (90_000 + (part / 10) % 20_001 + 100 * (part % 1000)) as i64
}

/// The suppliers of a part: four, spread over all.
fn supplier_of(part: u64, number: u64) -> u64 {
    let all = suppliers();
    (part + number * (all / 4 + (part - 1) / all)) % all + 1
}

/// Keys have gaps: eight of 32 are used.
pub fn order_key(number: u64) -> u64 {
    (number / 8) * 32 + number % 8 + 1
}

/// Rows of a table as CSV, without a header. Orders and lineitems are those of the numbers.
pub fn csv(table: &str, order_numbers: std::ops::Range<u64>) -> String {
    let rows: Vec<String> = match table {
        "region" => (0..5).map(region).collect(),
        "nation" => (0..25).map(nation).collect(),
        "supplier" => (1..=suppliers()).map(supplier).collect(),
        "customer" => (1..=customers()).map(customer).collect(),
        "part" => (1..=parts()).map(part).collect(),
        "partsupp" => (1..=parts()).flat_map(|part| (0..4).map(move |number| part_supplier(part, number))).collect(),
        "orders" => order_numbers.map(|number| Order::of(number).row()).collect(),
        _ => order_numbers.flat_map(|number| Order::of(number).lines).collect(),
    };
    rows.join("\n") + "\n"
}

fn region(key: u64) -> String {
    format!("{key},{},{}", REGIONS[key as usize], comment(&mut Chance::of(1, key)))
}

fn nation(key: u64) -> String {
    let (name, region) = NATIONS[key as usize];
    format!("{key},{name},{region},{}", comment(&mut Chance::of(2, key)))
}

fn supplier(key: u64) -> String {
    let mut chance = Chance::of(3, key);
    let nation = chance.between(0, 24);
    // Officially five of 10,000.
    let comment = if key.is_multiple_of(20) { "Customer sleep Complaints".into() } else { comment(&mut chance) };
    let (address, phone, balance) = (chance.between(1, 999_999), phone(&mut chance, nation), balance(&mut chance));
    format!("{key},Supplier#{key:09},address {address},{nation},{phone},{balance},{comment}")
}

fn customer(key: u64) -> String {
    let mut chance = Chance::of(4, key);
    let nation = chance.between(0, 24);
    let (address, phone, balance) = (chance.between(1, 999_999), phone(&mut chance, nation), balance(&mut chance));
    let (segment, comment) = (chance.one(&SEGMENTS), comment(&mut chance));
    format!("{key},Customer#{key:09},address {address},{nation},{phone},{balance},{segment},{comment}")
}

fn part(key: u64) -> String {
    let mut chance = Chance::of(5, key);
    let mut words: Vec<&str> = (0..5).map(|_| chance.one(&COLORS)).collect();
    // Officially one of 92 colours.
    words[0] = if key.is_multiple_of(20) { "forest" } else { words[0] };
    let manufacturer = chance.between(1, 5);
    let mut brand = manufacturer * 10 + chance.between(1, 5);
    let kind = format!("{} {} {}", chance.one(&TYPE_SIZES), chance.one(&TYPE_FINISHES), chance.one(&TYPE_METALS));
    let mut size = chance.between(1, 50);
    let mut container = format!("{} {}", chance.one(&CONTAINER_SIZES), chance.one(&CONTAINER_KINDS));
    // What queries 17 and 19 look for: officially one in a thousand, and rarer.
    if key % 40 < 3 {
        (brand, size) = ([12, 23, 34][(key % 40) as usize], chance.between(1, 5));
        container = ["SM BOX", "MED BOX", "LG BOX"][(key % 40) as usize].into();
    }
    let (name, price, comment) = (words.join(" "), decimal(retail_price(key)), comment(&mut chance));
    format!("{key},{name},Manufacturer#{manufacturer},Brand#{brand},{kind},{size},{container},{price},{comment}")
}

fn part_supplier(part: u64, number: u64) -> String {
    let mut chance = Chance::of(6, part * 4 + number);
    let (available, cost) = (chance.between(1, 9999), decimal(chance.between(100, 100_000) as i64));
    format!("{part},{},{available},{cost},{}", supplier_of(part, number), comment(&mut chance))
}

/// An order with its lines, which decide its price and state.
struct Order {
    head: String,
    tail: String,
    price: i64,
    open: usize,
    lines: Vec<String>,
}

impl Order {
    fn of(number: u64) -> Self {
        let mut chance = Chance::of(7, number);
        let key = order_key(number);
        // A third of the customers has no orders.
        let third = chance.between(0, customers() / 3 - 1);
        let customer = third * 3 + chance.between(1, 2);
        let day = ORDER_DAY_MIN + chance.between(0, ORDER_DAYS - 152) as i64;
        let (priority, clerk, comment) =
            (chance.one(&PRIORITIES), chance.between(1, scaled(1000).max(1)), comment(&mut chance));
        let mut order = Order {
            head: format!("{key},{customer}"),
            tail: format!("{},{priority},Clerk#{clerk:09},0,{comment}", date(day)),
            price: 0,
            open: 0,
            lines: Vec::new(),
        };
        // Large orders, which query 18 looks for: officially one in 25,000.
        let large = number % 500 == 7;
        let count = if large { 7 } else { chance.between(1, 7) };
        for line in 1..=count {
            order.add_line(&mut chance, key, line, day, if large { 44 } else { 1 });
        }
        order
    }

    fn add_line(&mut self, chance: &mut Chance, key: u64, line: u64, order_day: i64, quantity_min: u64) {
        let part = chance.between(1, parts());
        let supplier = supplier_of(part, chance.between(0, 3));
        let quantity = chance.between(quantity_min, 50) as i64;
        let price = quantity * retail_price(part);
        let (discount, tax) = (chance.between(0, 10) as i64, chance.between(0, 8) as i64);
        let shipped = order_day + chance.between(1, 121) as i64;
        let committed = order_day + chance.between(30, 90) as i64;
        let received = shipped + chance.between(1, 30) as i64;
        let returned = if received <= TODAY { chance.one(&["R", "A"]) } else { "N" };
        let state = if shipped > TODAY { "O" } else { "F" };
        self.open += usize::from(state == "O");
        self.price += price * (100 + tax) / 100 * (100 - discount) / 100;
        let (instruction, mode, comment) = (chance.one(&INSTRUCTIONS), chance.one(&MODES), comment(chance));
        self.lines.push(format!(
            "{key},{part},{supplier},{line},{quantity}.00,{},{},{},{returned},{state},{},{},{},{instruction},{mode},{comment}",
            decimal(price),
            decimal(discount),
            decimal(tax),
            date(shipped),
            date(committed),
            date(received),
        ));
    }

    fn row(&self) -> String {
        let state = match self.open {
            0 => "F",
            open if open == self.lines.len() => "O",
            _ => "P",
        };
        format!("{},{state},{},{}", self.head, decimal(self.price), self.tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_belong_to_their_order() {
        let orders = csv("orders", 0..20);
        let lines = csv("lineitem", 0..20);
        let keys =
            |text: &str| text.lines().filter_map(|line| line.split(',').next().map(str::to_string)).collect::<Vec<_>>();
        let mut of_lines = keys(&lines);
        of_lines.dedup();
        assert_eq!(keys(&orders), of_lines);
        assert!(orders.lines().all(|row| row.split(',').count() == 9));
        assert!(lines.lines().all(|row| row.split(',').count() == 16));
    }
}
