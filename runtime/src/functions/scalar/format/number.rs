//! Prints numbers by a pattern.
//!
//! The pattern says how many places there are before and after the point. The number is rounded to the places after
//! it; one that needs more places before it is printed as `#`. Then pattern and digits are walked together.

use datafusion::error::Result;
use plan::SqlState;

use super::super::overload::error;
use super::datetime::ordinal_ending;
use super::pattern::{Case, FieldPiece, Piece};

/// The keywords of numbers; longer ones first.
pub const KEYWORDS: &[&str] =
    &["EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH", ",", ".", "0", "9", "B", "D", "G", "L", "S", "V"];

/// Where S stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LocaleSign {
    None,
    Before,
    After,
}

/// What a pattern asks for.
#[derive(Debug)]
pub struct Layout {
    pieces: Vec<Piece>,
    /// Places before the point.
    before: usize,
    /// Places after the point.
    pub after: usize,
    /// Powers of ten by which the number is multiplied.
    pub shift: usize,
    point: bool,
    shifted: bool,
    /// The first place that is filled with a zero, and the last.
    zero_start: Option<usize>,
    zero_end: usize,
    fill: bool,
    sign: LocaleSign,
    plus: bool,
    minus: bool,
    bracket: bool,
    /// RN, and how it is written.
    pub roman: Option<Case>,
    /// EEEE.
    pub scientific: bool,
}

impl Layout {
    /// Reads a pattern.
    pub fn parse(pattern: &str) -> Result<Layout> {
        let mut layout = Layout {
            pieces: Vec::new(),
            before: 0,
            after: 0,
            shift: 0,
            point: false,
            shifted: false,
            zero_start: None,
            zero_end: 0,
            fill: false,
            sign: LocaleSign::None,
            plus: false,
            minus: false,
            bracket: false,
            roman: None,
            scientific: false,
        };
        let mut sign_after = 0;
        layout.pieces = super::pattern::split(pattern, KEYWORDS, &[]);
        for piece in &layout.pieces.clone() {
            if let Piece::Field(field) = piece {
                layout.fill |= field.fill;
                layout.note(field, &mut sign_after)?;
            }
        }
        // S before no place at all, or after all of them.
        let places_before_sign = sign_after;
        let own_sign = layout.plus || layout.minus;
        if !own_sign && layout.sign == LocaleSign::Before && layout.before == places_before_sign {
            layout.sign = LocaleSign::After;
        }
        layout.fill |= has_fill(pattern);
        Ok(layout)
    }

    fn note(&mut self, field: &FieldPiece, sign_after: &mut usize) -> Result<()> {
        let wrong = |message: &str| Err(error(SqlState::SYNTAX_ERROR, message));
        match field.keyword {
            "9" | "0" if self.bracket => return wrong("\"PR\" must be last in the format"),
            "9" if self.shifted => self.shift += 1,
            "9" if self.point => self.after += 1,
            "9" => self.before += 1,
            "0" => {
                if self.point {
                    self.after += 1;
                } else {
                    self.zero_start.get_or_insert(self.before);
                    self.before += 1;
                }
                self.zero_end = self.before + self.after;
            }
            "D" | "." if self.point => return wrong("multiple decimal points"),
            "D" | "." if self.shifted => return wrong("cannot use \"V\" and decimal point together"),
            "D" | "." => self.point = true,
            "S" if self.sign != LocaleSign::None => return wrong("cannot use \"S\" twice"),
            "S" if self.plus || self.minus || self.bracket => {
                return wrong("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together");
            }
            "S" => {
                self.sign = if self.point { LocaleSign::After } else { LocaleSign::Before };
                *sign_after = self.before;
            }
            "MI" | "PL" | "SG" if self.sign != LocaleSign::None => {
                return wrong(&format!("cannot use \"S\" and \"{}\" together", field.keyword));
            }
            "MI" => self.minus = true,
            "PL" => self.plus = true,
            "SG" => (self.plus, self.minus) = (true, true),
            "PR" if self.sign != LocaleSign::None || self.plus || self.minus => {
                return wrong("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together");
            }
            "PR" => self.bracket = true,
            "RN" => self.roman = Some(field.case),
            "V" if self.point => return wrong("cannot use \"V\" and decimal point together"),
            "V" => self.shifted = true,
            "EEEE" => self.scientific = true,
            _ => {}
        }
        Ok(())
    }

    /// Places before the point, those of the multiplication included.
    fn whole_places(&self) -> usize {
        self.before + self.shift
    }

    /// Prints a number that is multiplied and rounded already: its digits with a point, and a minus before them.
    pub fn print(&self, number: &str) -> String {
        let (negative, digits) = match number.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, number),
        };
        let whole = digits.find('.').unwrap_or(digits.len());
        let places = self.whole_places();
        let digits = if whole > places {
            let point = if digits.contains('.') || self.point { "." } else { "" };
            format!("{}{point}{}", "#".repeat(places), "#".repeat(self.after))
        } else {
            digits.to_string()
        };
        Printer::new(self, digits, places.saturating_sub(whole), negative).print()
    }

    /// Prints a number of the form d.ddde+00.
    pub fn print_scientific(number: &str) -> String {
        if number.starts_with('-') { number.to_string() } else { format!(" {number}") }
    }

    /// Prints a Roman number; others than 1 to 3999 have none.
    pub fn print_roman(&self, number: Option<u32>, case: Case) -> String {
        let text = match number.filter(|number| (1..4_000).contains(number)) {
            Some(number) => roman(number),
            None => return "#".repeat(15),
        };
        let text = if case == Case::Lower { text.to_lowercase() } else { text };
        if self.fill { text } else { format!("{text:>15}") }
    }
}

/// Whether FM stands anywhere outside of quotes; before a character that is no keyword, no field carries it.
fn has_fill(pattern: &str) -> bool {
    pattern.split('"').step_by(2).any(|part| part.contains("FM") || part.contains("fm"))
}

fn roman(mut number: u32) -> String {
    const NUMERALS: [(u32, &str); 13] = [
        (1_000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut text = String::new();
    for (value, numeral) in NUMERALS {
        while number >= value {
            text.push_str(numeral);
            number -= value;
        }
    }
    text
}

/// The walk over pattern and digits.
struct Printer<'a> {
    layout: &'a Layout,
    digits: Vec<u8>,
    /// The next digit.
    at: usize,
    /// The last digit that FM leaves.
    last_relevant: Option<usize>,
    /// Places before the first digit.
    blanks: usize,
    negative: bool,
    sign_written: bool,
    /// The place of the pattern.
    place: usize,
    /// The place after which a sign at the end is written.
    last_place: usize,
    in_number: bool,
    out: String,
}

impl<'a> Printer<'a> {
    fn new(layout: &'a Layout, digits: String, blanks: usize, negative: bool) -> Self {
        let own_sign = layout.plus || layout.minus;
        let sign_written =
            if own_sign { layout.minus } else { !negative && layout.fill && layout.sign == LocaleSign::None };
        let mut last_place = (layout.after + layout.whole_places()).saturating_sub(1);
        if !sign_written && blanks == 0 {
            last_place += 1;
        }
        let last_place = last_place + usize::from(blanks > 0) + usize::from(layout.point);
        let mut last_relevant = None;
        if layout.fill && layout.point {
            last_relevant = last_relevant_digit(digits.as_bytes());
            if let Some(last) = last_relevant.as_mut().filter(|_| layout.zero_end > blanks) {
                *last = (*last).max((layout.zero_end - blanks).min(digits.len().saturating_sub(1)));
            }
        }
        Printer {
            layout,
            digits: digits.into_bytes(),
            at: 0,
            last_relevant,
            blanks,
            negative,
            sign_written,
            place: 0,
            last_place,
            in_number: false,
            out: String::new(),
        }
    }

    fn print(mut self) -> String {
        let layout = self.layout;
        for piece in &layout.pieces {
            match piece {
                Piece::Literal(character) | Piece::Quoted(character) => self.out.push(*character),
                Piece::Field(field) => self.field(field),
            }
        }
        self.out
    }

    fn field(&mut self, field: &FieldPiece) {
        let fill = self.layout.fill;
        match field.keyword {
            keyword @ ("9" | "0" | "." | "D") => self.place(keyword),
            "," | "G" if self.in_number => self.out.push(','),
            "," | "G" | "L" if !fill || field.keyword == "L" => self.out.push(' '),
            "MI" if self.negative => self.out.push('-'),
            "PL" if !self.negative => self.out.push('+'),
            "MI" | "PL" if !fill => self.out.push(' '),
            "SG" => self.out.push(if self.negative { '-' } else { '+' }),
            "TH" => self.ordinal(field.case),
            _ => {}
        }
        if let Some(case) = field.ordinal {
            self.ordinal(case);
        }
    }

    fn ordinal(&mut self, case: Case) {
        if self.digits.first() != Some(&b'#') && !self.negative && !self.layout.point {
            let digits = String::from_utf8_lossy(&self.digits).into_owned();
            self.out.push_str(ordinal_ending(&digits, case));
        }
    }

    /// A zero before the point for which there is no place in particular: 0.1 as 9.9 is " .1".
    fn is_zero_before_point(&self) -> bool {
        self.layout.zero_start.is_none() && self.at == 0 && self.digits.first() == Some(&b'0') && self.layout.after > 0
    }

    /// Whether only zeros follow the point.
    fn ends_at_point(&self) -> bool {
        self.last_relevant.is_some_and(|last| self.digits.get(last) == Some(&b'.'))
    }

    fn place(&mut self, keyword: &str) {
        self.in_number = false;
        let zero_start = self.layout.zero_start;
        let starts = self.place >= self.blanks || zero_start == Some(self.place);
        if !self.sign_written && starts && (!self.is_zero_before_point() || self.ends_at_point()) {
            self.sign_before();
        }
        let zeros = zero_start.is_some_and(|start| start <= self.place);
        if self.place < self.blanks && !zeros {
            self.blank();
        } else if self.place < self.blanks {
            self.out.push('0');
            self.in_number = true;
        } else {
            self.digit(keyword);
        }
        let after_last = self.last_relevant == Some(self.at);
        let end = if after_last { self.place } else { self.last_place };
        if self.place + 1 == end {
            self.sign_after();
        }
        self.place += 1;
    }

    fn blank(&mut self) {
        if !self.layout.fill {
            self.out.push(' ');
        }
    }

    fn digit(&mut self, keyword: &str) {
        let next = self.digits.get(self.at).copied();
        match next {
            Some(b'.') if !self.ends_at_point() || self.layout.fill => self.out.push('.'),
            Some(b'.') => {}
            _ if self.last_relevant.is_some_and(|last| self.at > last) && keyword != "0" => {}
            _ if self.is_zero_before_point() => {
                if self.layout.fill && self.ends_at_point() {
                    self.out.push('0');
                } else {
                    self.blank();
                }
            }
            Some(digit) => {
                self.out.push(char::from(digit));
                self.in_number = true;
            }
            None => {}
        }
        self.at += usize::from(next.is_some());
    }

    fn sign_before(&mut self) {
        let sign = if self.negative { '-' } else { '+' };
        match self.layout.sign {
            LocaleSign::After => return,
            LocaleSign::Before => self.out.push(sign),
            LocaleSign::None if self.layout.bracket => {
                if self.negative {
                    self.out.push('<');
                } else {
                    self.blank();
                }
            }
            LocaleSign::None if self.negative => self.out.push('-'),
            LocaleSign::None => self.blank(),
        }
        self.sign_written = true;
    }

    fn sign_after(&mut self) {
        if self.layout.bracket && self.sign_written {
            if self.negative {
                self.out.push('>');
            } else {
                self.blank();
            }
        } else if self.layout.sign == LocaleSign::After {
            self.out.push(if self.negative { '-' } else { '+' });
        }
    }
}

/// The last digit after the point that is not zero, or the point.
fn last_relevant_digit(digits: &[u8]) -> Option<usize> {
    let point = digits.iter().position(|digit| *digit == b'.')?;
    Some((point + 1..digits.len()).rev().find(|at| digits[*at] != b'0').unwrap_or(point))
}
