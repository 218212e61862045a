//! Names and words that say too little: a variable that may hold anything, types that every crate could
//! have one of, and pronouns in place of who it is.

use super::tokens::Tokens;

/// Says that something belongs to something, and neither what nor to what.
pub(super) const VARIABLE: &str = "own";
/// Without a noun before them, these leave open of what.
pub(super) const TYPES: [&str; 4] = ["Place", "Verdict", "Step", "Outcome"];
/// Put together here, so that this file does not break its own rule.
pub(super) const WORDS: [&str; 3] = [
    concat!("some", "body"),
    concat!("no", "body"),
    concat!("who", "ever"),
];

/// The line of each declaration of such a type.
pub(super) fn types(tokens: &Tokens<'_>) -> Vec<usize> {
    let declares = |at: &usize| {
        matches!(tokens.text(*at), "struct" | "enum" | "trait" | "type")
            && TYPES.contains(&tokens.text(*at + 1))
    };
    let found = (0..tokens.len()).filter(declares);
    found.map(|at| tokens.line(at + 1)).collect()
}

/// The line of each such word, in comments, strings and names alike.
pub(super) fn words(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let (mut lines, mut line) = (Vec::new(), 1);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' => line += 1,
            b's' | b'S' | b'n' | b'N' | b'w' | b'W' => {
                let is = |word: &str| {
                    let found = bytes.get(at..at + word.len());
                    found.is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes()))
                };
                if WORDS.into_iter().any(is) {
                    lines.push(line);
                }
            }
            _ => {}
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_where_they_are_declared() {
        let check = |text| types(&Tokens::of(text));
        assert_eq!(check("pub struct Place<'a>(u8);\n\nenum Step {}"), [1, 3]);
        assert_eq!(check("trait Verdict {}\ntype Outcome = u8;"), [1, 2]);
        let fine = "// enum Step\nuse a::Step; struct LaunchStep { step: Step }\nenum A { Step }";
        assert!(check(fine).is_empty());
        assert!(check("\"struct Place\"").is_empty());
    }

    #[test]
    fn words_are_found_anywhere() {
        let [some, no, who] = WORDS;
        let text = format!(
            "// {some}'s\nlet a = \"{};\"\nfn {who}_asks() {{}}",
            no.to_uppercase()
        );
        assert_eq!(words(&text), [1, 2, 3]);
        assert!(words("// some body of text, who ever, anybody").is_empty());
    }
}
