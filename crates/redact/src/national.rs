//! Check digits of bank account numbers and national identification numbers.

/// Whether a text is an international bank account number: it is as long as the numbers of its
/// country, and its check digits fit (ISO 7064 MOD 97-10).
pub(crate) fn is_iban(text: &str) -> bool {
    /// Countries and lengths: the IBAN registry of SWIFT.
    const LENGTHS: &str = "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27\
        DK18DO28EE20EG29ES24FI18FK18FO18FR27GB22GE22GI23GL18GR27GT28HN28HR21HU28IE22IL23IQ23IS26\
        IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28NL18NO15\
        OM23PK24PL28PS29PT25QA29RO24RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26\
        UA29VA22VG24XK20YE30";
    let plain: Vec<u8> = text.bytes().filter(u8::is_ascii_alphanumeric).collect();
    if plain.len() < 15 {
        return false;
    }
    let known = LENGTHS.as_bytes().chunks(4).find(|it| it[..2] == plain[..2]);
    let len = known.map(|it| usize::from(it[2] - b'0') * 10 + usize::from(it[3] - b'0'));
    let turned = plain[4..].iter().chain(&plain[..4]);
    let rest = turned.fold(0_u32, |rest, &byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        _ => (rest * 100 + u32::from(byte.to_ascii_uppercase() - b'A') + 10) % 97,
    });
    len == Some(plain.len()) && rest == 1 && plain[4..].iter().any(|byte| *byte != b'0')
}

/// Whether a text is a social security number of the United States. Excludes numbers that were
/// never issued (20 CFR 422; "Social Security Number Randomization", SSA) or that are known from
/// advertisements and examples.
pub(crate) fn is_us_ssn(text: &str) -> bool {
    let digits = digits(text);
    if digits.len() != 9 {
        return false;
    }
    let area = number(&digits[0..3]);
    let group = number(&digits[3..5]);
    let serial = number(&digits[5..9]);
    let given = !matches!(area, 0 | 666 | 900..) && group != 0 && serial != 0;
    given && !matches!((area, group, serial), (78, 5, 1120) | (219, 9, 9999) | (123, 45, 6789))
}

fn number(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |number, digit| number * 10 + u64::from(*digit))
}

/// Whether a text is a national insurance number of the United Kingdom (HMRC, NIM39110). Excludes
/// numbers with the digits of the official example, 123456, and those with six equal digits.
pub(crate) fn is_uk_nino(text: &str) -> bool {
    let plain: Vec<u8> = text.bytes().filter(u8::is_ascii_alphanumeric).collect();
    let [first, second, digits @ .., last] = &*plain else { return false };
    digits.len() == 6
        && !b"DFIQUV".contains(first)
        && !b"DFIQUVO".contains(second)
        && !matches!(&[*first, *second], b"BG" | b"GB" | b"KN" | b"NK" | b"NT" | b"TN" | b"ZZ")
        && (b'A'..=b'D').contains(last)
        && digits.iter().any(|digit| *digit != digits[0])
        && digits != b"123456"
}

/// Whether a text is a German tax number (§ 139b AO): its check digit fits (ISO 7064 MOD 11,10),
/// and of its first ten digits, exactly one occurs more than once, two or three times.
pub(crate) fn is_german_tax_id(text: &str) -> bool {
    let digits = digits(text);
    let [body @ .., check] = &*digits else { return false };
    let mut product = 10;
    for digit in body {
        let sum = (u32::from(*digit) + product) % 10;
        product = if sum == 0 { 10 } else { sum } * 2 % 11;
    }
    let counts = (0..10).map(|digit| body.iter().filter(|it| **it == digit).count());
    let repeated: Vec<usize> = counts.filter(|n| *n > 1).collect();
    let is_valid = (11 - product) % 10 == u32::from(*check);
    body.len() == 10 && body[0] != 0 && is_valid && matches!(*repeated, [2 | 3])
}

/// Whether a text is a number of the French population register (NIR). Its last two digits are 97
/// minus the remainder of its first 13 divided by 97.
pub(crate) fn is_french_nir(text: &str) -> bool {
    // The numbers of Corsica contain letters. The check digits are those of the number with 19 in
    // place of 2A, and 18 in place of 2B.
    let text = text.replace("2A", "19").replace("2B", "18");
    let digits = digits(&text);
    if digits.len() != 15 {
        return false;
    }
    97 - number(&digits[..13]) % 97 == number(&digits[13..])
}

/// Whether a text is a Spanish DNI or NIE. Its number modulo 23 determines its letter.
pub(crate) fn is_spanish_id(text: &str) -> bool {
    let plain: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_uppercase();
    let (Some(number), Some(letter)) = (plain.get(..8), plain.as_bytes().get(8).copied()) else {
        return false;
    };
    let number = number.replace('X', "0").replace('Y', "1").replace('Z', "2");
    let rest = number.parse::<usize>().map(|number| number % 23);
    plain.len() == 9 && rest.is_ok_and(|rest| b"TRWAGMYFPDXBNJZSQVHLCKE"[rest] == letter)
}

/// Whether a text is an Italian tax code. The values of its other characters determine its last
/// letter (DM 23/12/1976).
pub(crate) fn is_italian_tax_code(text: &str) -> bool {
    const ODD: [u32; 26] = [
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24,
        23,
    ];
    let [body @ .., check] = text.as_bytes() else { return false };
    let values = body.iter().enumerate().map(|(idx, byte)| {
        let place = match byte {
            b'0'..=b'9' => byte - b'0',
            _ => byte.to_ascii_uppercase().saturating_sub(b'A').min(25),
        };
        if idx.is_multiple_of(2) { ODD[usize::from(place)] } else { u32::from(place) }
    });
    let sum: u32 = values.sum();
    body.len() == 15 && u32::from(check.to_ascii_uppercase()) == u32::from(b'A') + sum % 26
}

/// Whether a text is a Dutch BSN. The weighted sum of its digits is a multiple of 11.
pub(crate) fn is_dutch_bsn(text: &str) -> bool {
    let digits = digits(text);
    let weights = [9_i32, 8, 7, 6, 5, 4, 3, 2, -1];
    let sum: i32 = digits.iter().zip(weights).map(|(digit, by)| i32::from(*digit) * by).sum();
    digits.len() == 9 && sum != 0 && sum % 11 == 0 && varied(&digits)
}

/// Whether a text is a Polish PESEL. The weighted sum of its digits is a multiple of 10.
pub(crate) fn is_polish_pesel(text: &str) -> bool {
    let digits = digits(text);
    let weights = [1_u32, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1];
    let sum: u32 = digits.iter().zip(weights).map(|(digit, by)| u32::from(*digit) * by).sum();
    digits.len() == 11 && sum.is_multiple_of(10) && varied(&digits)
}

/// Whether a text is a Brazilian CPF. It ends in two check digits modulo 11.
pub(crate) fn is_brazilian_cpf(text: &str) -> bool {
    let digits = digits(text);
    digits.len() == 11
        && varied(&digits)
        && cpf_check(&digits[..9]) == digits[9]
        && cpf_check(&digits[..10]) == digits[10]
}

fn cpf_check(digits: &[u8]) -> u8 {
    let by = (2..=digits.len() as u32 + 1).rev();
    let sum: u32 = digits.iter().zip(by).map(|(digit, by)| u32::from(*digit) * by).sum();
    (sum * 10 % 11 % 10) as u8
}

fn digits(text: &str) -> Vec<u8> {
    text.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect()
}

/// Whether the digits are not all the same.
fn varied(digits: &[u8]) -> bool {
    digits.iter().any(|digit| *digit != digits[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The valid numbers are the issuers' own examples, or invented. All are written in parts, so
    /// that this file contains no such number.
    #[test]
    fn check_digits_are_checked() {
        type Check = fn(&str) -> bool;
        type Parts = &'static [&'static [&'static str]];
        let cases: [(Check, Parts, Parts); 10] = [
            (
                is_iban,
                &[&["DE89 3704 0044", " 0532 0130 00"], &["GB29NWBK", "60161331926819"]],
                &[&["DE88 3704 0044", " 0532 0130 00"], &["DE89 3704 0044 0532"], &["XX89"]],
            ),
            (
                is_us_ssn,
                &[&["536-", "22-", "8726"]],
                &[&["666-", "22-8726"], &["900-22-8726"], &["123-45-", "6789"], &["536-00-8726"]],
            ),
            (is_uk_nino, &[&["AA ", "31 22 46 C"]], &[&["BG", "312246C"], &["AA123456C"]]),
            (is_german_tax_id, &[&["86 095", " 742 719"]], &[&["86095742", "718"], &["1"]]),
            (is_french_nir, &[&["2 55 08 14 168", " 025 38"]], &[&["25508141680", "2539"]]),
            (is_spanish_id, &[&["12345678", "Z"], &["X1234567", "L"]], &[&["12345678", "A"]]),
            (is_italian_tax_code, &[&["RSSMRA85", "T10A562S"]], &[&["RSSMRA85", "T10A562T"]]),
            (is_dutch_bsn, &[&["1112", "22333"]], &[&["1112", "22334"], &["000000000"]]),
            (is_polish_pesel, &[&["440514", "01359"]], &[&["440514", "01358"]]),
            (is_brazilian_cpf, &[&["529.982", ".247-25"]], &[&["529.982", ".247-26"]]),
        ];
        for (check, yes, no) in cases {
            for text in yes {
                assert!(check(&text.concat()), "{text:?}");
            }
            for text in no {
                assert!(!check(&text.concat()), "{text:?}");
            }
        }
    }
}
