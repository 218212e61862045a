//! The encoding itself: fields as numbers and values, one after the other.

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

/// A value as it is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire<'b> {
    /// A number of one to ten bytes.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// Four bytes.
    Fixed32(u32),
    /// Text, bytes, a message, or a packed list.
    Bytes(&'b [u8]),
}

impl<'b> Wire<'b> {
    /// What has a length.
    pub(super) fn bytes(self) -> Result<&'b [u8], Malformed> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Varint(_) | Self::Fixed64(_) | Self::Fixed32(_) => Err(Malformed(
                "a number where there should be a text or a message",
            )),
        }
    }

    /// Text.
    pub(super) fn text(self) -> Result<&'b str, Malformed> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Malformed("a text is not UTF-8"))
    }

    /// A whole number; negative ones come as their two's complement.
    pub(super) fn number(self) -> Result<i64, Malformed> {
        match self {
            Self::Varint(number) => Ok(number.cast_signed()),
            Self::Fixed64(_) | Self::Fixed32(_) | Self::Bytes(_) => Err(Malformed(
                "something else where there should be a whole number",
            )),
        }
    }
}

/// What is left to read of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    /// From the start.
    pub(super) const fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    /// True when nothing is left.
    pub(super) const fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next field's number and value, until the message ends.
    pub(super) fn next_field(&mut self) -> Result<Option<(u32, Wire<'b>)>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let number =
            u32::try_from(key >> 3).map_err(|_| Malformed("a field number is too large"))?;
        if number == 0 {
            return Err(Malformed("a field has the number 0"));
        }
        let value = match key & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?);
                let length = length.map_err(|_| Malformed("a length is too large"))?;
                Wire::Bytes(self.take(length)?)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(Malformed("a field has an encoding that is not in use")),
        };
        Ok(Some((number, value)))
    }

    /// A number of seven bits a byte, the lowest first.
    pub(super) fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0_u64;
        for place in 0..10 {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f).checked_shl(7 * place).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed("a number is too long"))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| CUT_SHORT)
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(CUT_SHORT)?;
        self.rest = rest;
        Ok(taken)
    }
}

const CUT_SHORT: Malformed = Malformed("unexpected EOF");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_one_by_one() {
        let bytes = [
            0x08, 0x96, 0x01, // 1: 150
            0x12, 0x02, b'h', b'i', // 2: "hi"
            0x19, 1, 0, 0, 0, 0, 0, 0, 0, // 3: eight bytes
            0x25, 2, 0, 0, 0, // 4: four bytes
        ];
        let mut reader = Reader::new(&bytes);
        let mut next = || reader.next_field();
        assert_eq!(next(), Ok(Some((1, Wire::Varint(150)))));
        assert_eq!(next(), Ok(Some((2, Wire::Bytes(b"hi")))));
        assert_eq!(next(), Ok(Some((3, Wire::Fixed64(1)))));
        assert_eq!(next(), Ok(Some((4, Wire::Fixed32(2)))));
        assert_eq!(next(), Ok(None));
        assert_eq!(Wire::Varint(u64::MAX).number(), Ok(-1));
    }

    #[test]
    fn bad_bytes_are_told_apart() {
        for (bytes, why) in [
            (&[0x08][..], "unexpected EOF"),
            (&[0x12, 0x05, b'a'], "unexpected EOF"),
            (&[0x00, 0x00], "number 0"),
            (&[0x0b], "not in use"),
            (&[0x80; 12], "too long"),
            (
                &[
                    0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
                ],
                "unexpected EOF",
            ),
        ] {
            let Malformed(found) = Reader::new(bytes).next_field().unwrap_err();
            assert!(found.contains(why), "{bytes:?}: {found}");
        }
    }
}
