//! A pattern, split into fields and literal text.

/// How a name is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// MONTH
    Upper,
    /// Month
    Capital,
    /// month
    Lower,
}

/// A field of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPiece {
    /// The keyword in capitals, as in the list that was asked for.
    pub keyword: &'static str,
    /// How the keyword is written, and so what it stands for.
    pub case: Case,
    /// FM before it: no blanks and zeros to fill up.
    pub fill: bool,
    /// TH or th after it: an ordinal number.
    pub ordinal: Option<Case>,
}

/// A piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A field.
    Field(FieldPiece),
    /// A character that stands for itself.
    Literal(char),
    /// A character in quotes, which stands for itself.
    Quoted(char),
}

/// Splits a pattern. Longer keywords come before shorter ones with the same beginning. The names of months and days are
/// also known with one capital.
pub fn split(pattern: &str, keywords: &[&'static str], names: &[&str]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let (fill, after_prefix) = prefix(rest);
        if let Some((keyword, case)) = keyword_at(after_prefix, keywords, names) {
            rest = &after_prefix[keyword.len()..];
            let ordinal = match rest.get(..2) {
                Some("TH") => Some(Case::Upper),
                Some("th") => Some(Case::Lower),
                _ => None,
            };
            if ordinal.is_some() || matches!(rest.get(..2), Some("SP" | "sp")) {
                rest = &rest[2..];
            }
            pieces.push(Piece::Field(FieldPiece { keyword, case, fill, ordinal }));
            continue;
        }
        if after_prefix.len() < rest.len() {
            rest = after_prefix;
            continue;
        }
        rest = &rest[first.len_utf8()..];
        match first {
            '"' => rest = quoted(rest, &mut pieces),
            '\\' if rest.starts_with('"') => {
                pieces.push(Piece::Literal('"'));
                rest = &rest[1..];
            }
            other => pieces.push(Piece::Literal(other)),
        }
    }
    pieces
}

/// Takes FM, TM and FX off, and says whether FM was there.
fn prefix(mut text: &str) -> (bool, &str) {
    let mut fill = false;
    loop {
        match text.get(..2) {
            Some("FM" | "fm") => fill = true,
            Some("TM" | "tm" | "FX" | "fx") => {}
            _ => return (fill, text),
        }
        text = &text[2..];
    }
}

fn keyword_at(text: &str, keywords: &[&'static str], names: &[&str]) -> Option<(&'static str, Case)> {
    keywords.iter().find_map(|keyword| {
        let written = text.get(..keyword.len())?;
        let capital = || {
            let (head, tail) = (&written[..1], &written[1..]);
            head == &keyword[..1] && tail.bytes().all(|b| b.is_ascii_lowercase())
        };
        if !written.eq_ignore_ascii_case(keyword) {
            None
        } else if written == *keyword {
            Some((*keyword, Case::Upper))
        } else if written == keyword.to_ascii_lowercase() {
            Some((*keyword, Case::Lower))
        } else if names.contains(keyword) && capital() {
            Some((*keyword, Case::Capital))
        } else {
            None
        }
    })
}

/// Takes the text up to the closing quote.
fn quoted<'p>(text: &'p str, pieces: &mut Vec<Piece>) -> &'p str {
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return &text[at + 1..],
            '\\' => match characters.next() {
                Some((_, escaped)) => pieces.push(Piece::Quoted(escaped)),
                None => return "",
            },
            other => pieces.push(Piece::Quoted(other)),
        }
    }
    ""
}
