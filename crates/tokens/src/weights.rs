//! Weights of the estimate, in thousandths of a token.
//!
//! They were fitted to texts of up to 2,000 characters, so that the sum of the absolute relative
//! errors is least; each part that the pattern of o200k splits off is taken to have at least one
//! token. A weight with little data keeps its initial value. Two weights are set by hand: a Han
//! character and an emoji that equal the one before them have the weight of any other Han character
//! or emoji. [`Estimate`](crate::Estimate) describes the data of the fit and its error on other
//! texts.

/// Number of features of a text, each with a weight.
pub(crate) const FEATURES: usize = 1_004;

/// The weights of all features, in thousandths of a token, in the order in which `estimate`
/// declares the features. Each comment names the features of the numbers below it.
#[rustfmt::skip]
pub(crate) static WEIGHTS: [u16; FEATURES] = [
    // Words with nothing before them, in small letters, by length.
    1000, 1000, 1000, 1000, 1000, 1306, 1000, 1000, 1653, 1000, 2103, 2140, 1913, 2072, 2223, 2090,
    2179, 2125, 2197, 2463,
    // Words with nothing before them, with one capital, by length.
    1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1052, 1000, 1465, 2281, 3111, 2865, 2566, 2318,
    2400, 2311, 2390, 2887,
    // Words with nothing before them, with several capitals, by length.
    1000, 1000, 1226, 1250, 1897, 1836, 1194, 2508, 1669, 1613, 1786, 1904, 1794, 1789, 1938, 1942,
    2030, 2103, 2200, 2305,
    // Words with nothing before them, with accents, by length.
    1000, 1000, 1000, 1111, 1000, 4000, 3966, 4142, 4414, 3931, 4136, 3017, 2568, 2242, 2090, 2092,
    2249, 2216, 2348, 2647,
    // Words after a space, in small letters, by length.
    1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1148, 1587, 2100, 2323, 3043, 3886,
    3383, 3063, 3251, 4360,
    // Words after a space, with one capital, by length.
    1000, 1000, 1000, 1000, 1083, 1000, 1000, 1558, 1283, 1216, 2151, 2265, 2261, 2354, 2980, 2366,
    2772, 2521, 2394, 2988,
    // Words after a space, with several capitals, by length.
    1000, 1004, 1787, 1000, 1304, 1516, 1672, 2020, 1000, 1738, 1222, 1612, 1803, 1742, 1909, 1914,
    1999, 2102, 2200, 2351,
    // Words after a space, with accents, by length.
    1000, 1000, 1000, 1000, 1000, 2999, 4500, 3750, 5129, 3550, 5279, 3369, 3740, 3120, 3617, 2475,
    2594, 2460, 2594, 3168,
    // Words after a tab, in small letters, by length.
    1000, 1000, 1000, 1022, 1000, 1351, 1000, 1595, 1869, 1446, 1301, 1742, 1592, 1700, 1800, 1900,
    2000, 2100, 2200, 2300,
    // Words after a tab, with one capital, by length.
    1000, 1000, 1613, 1286, 1000, 1748, 1000, 1829, 1216, 2400, 2237, 1409, 1621, 1727, 1800, 1917,
    2000, 2100, 2209, 2300,
    // Words after a tab, with several capitals, by length.
    1000, 1000, 1000, 1438, 1002, 1006, 1000, 1104, 1200, 1438, 1400, 1500, 1600, 1700, 1800, 1900,
    2000, 2100, 2200, 2300,
    // Words after a tab, with accents, by length.
    1000, 1000, 1084, 1000, 1100, 1164, 1066, 1169, 1242, 1321, 1425, 1500, 1615, 1707, 1809, 1900,
    2000, 2100, 2200, 2300,
    // Words after digits, in small letters, by length.
    1000, 1260, 1924, 1792, 2083, 1585, 1622, 1393, 1383, 1357, 1464, 1791, 1623, 1750, 1839, 1940,
    2017, 2100, 2200, 2306,
    // Words after digits, with one capital, by length.
    1206, 1154, 1017, 1057, 1044, 1000, 1000, 1086, 1147, 1256, 1400, 1506, 1600, 1706, 1800, 1900,
    2000, 2100, 2200, 2300,
    // Words after digits, with several capitals, by length.
    1000, 2000, 2500, 3000, 1626, 2260, 1483, 1291, 1184, 1322, 1508, 1500, 1600, 1700, 1800, 1900,
    2000, 2100, 2200, 2300,
    // Words after digits, with accents, by length.
    1000, 1017, 1000, 1000, 1032, 1020, 1044, 1149, 1239, 1338, 1408, 1491, 1600, 1700, 1800, 1900,
    2000, 2100, 2200, 2300,
    // Words after a backslash, in small letters, by length.
    1000, 1590, 1598, 2195, 2149, 1578, 2064, 2473, 2091, 1950, 1626, 1501, 1655, 1715, 1800, 1900,
    2000, 2100, 2200, 2300,
    // Words after a backslash, with one capital, by length.
    1078, 1000, 1000, 1000, 1000, 1000, 1000, 1100, 1200, 1300, 1389, 1500, 1600, 1700, 1800, 1900,
    2000, 2100, 2200, 2300,
    // Words after a backslash, with several capitals, by length.
    1000, 1000, 1000, 1000, 1000, 1000, 1000, 1100, 1198, 1300, 1400, 1500, 1600, 1700, 1800, 1900,
    2000, 2100, 2200, 2300,
    // Words after a backslash, with accents, by length.
    1000, 1000, 1000, 1000, 1000, 1000, 1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700, 1800, 1900,
    2000, 2100, 2200, 2300,
    // Words after one of ._/-, in small letters, by length.
    1000, 1000, 1464, 1000, 1000, 1700, 1000, 1310, 1000, 1000, 2107, 1883, 2439, 1885, 1810, 2027,
    1640, 2171, 2307, 2526,
    // Words after one of ._/-, with one capital, by length.
    1464, 1000, 1000, 1468, 2393, 1000, 1088, 1868, 1287, 1572, 1819, 2026, 1906, 1905, 2339, 1964,
    2973, 2162, 2271, 2399,
    // Words after one of ._/-, with several capitals, by length.
    1000, 2000, 1000, 1963, 1904, 1869, 1000, 2286, 2141, 2018, 1616, 1730, 1677, 1700, 1944, 1900,
    2000, 2100, 2200, 2300,
    // Words after one of ._/-, with accents, by length.
    1000, 1000, 1000, 1000, 1397, 1434, 1304, 1442, 1531, 1676, 1676, 1724, 1727, 1851, 2020, 1928,
    2254, 2118, 2277, 2353,
    // Words after a quote, in small letters, by length.
    60, 0, 1000, 1000, 1000, 2112, 1761, 2038, 2215, 2119, 1081, 1886, 1658, 1688, 1807, 1829, 2000,
    2076, 2200, 2300,
    // Words after a quote, with one capital, by length.
    805, 971, 1019, 1000, 1139, 1000, 1232, 1169, 1227, 1333, 1404, 1500, 1600, 1722, 1800, 1900,
    2000, 2100, 2200, 2300,
    // Words after a quote, with several capitals, by length.
    1000, 1101, 1246, 1013, 1000, 1516, 1000, 1097, 1196, 1322, 1400, 1499, 1600, 1700, 1800, 1900,
    2000, 2100, 2200, 2300,
    // Words after a quote, with accents, by length.
    1198, 982, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1250, 1343, 1515, 1610, 1710, 1800, 1911,
    2000, 2100, 2200, 2300,
    // Words after another mark, in small letters, by length.
    1000, 1981, 1000, 1000, 1000, 1439, 1000, 1000, 1197, 1882, 1407, 1664, 1716, 1842, 1787, 1900,
    2020, 2103, 2200, 2335,
    // Words after another mark, with one capital, by length.
    1398, 1171, 1000, 1000, 1631, 1000, 1530, 1259, 1000, 1047, 1594, 1419, 1659, 1706, 1790, 1918,
    2000, 2100, 2200, 2300,
    // Words after another mark, with several capitals, by length.
    1000, 1012, 2394, 1000, 1268, 1585, 1262, 1000, 1031, 1412, 1423, 1486, 1629, 1710, 1809, 1908,
    2000, 2100, 2200, 2300,
    // Words after another mark, with accents, by length.
    1108, 1000, 1000, 1022, 1038, 1030, 1154, 1193, 1379, 1357, 1369, 1506, 1621, 1709, 1800, 1900,
    2010, 2100, 2200, 2300,
    // Words: each letter beyond the 20th; each accented letter.
    400, 0,
    // Marks before a word, by byte.
    100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100,
    100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100,
    100, 125, 0, 530, 0, 0, 502, 172, 0, 782, 340, 931, 523, 367, 0, 516,
    100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 116, 150, 0, 367, 0, 0,
    1000, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100,
    100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 1000, 58, 0, 896, 0,
    596, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100,
    100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 216, 854, 0, 100, 100,
    // Each group of up to three digits.
    1000,
    // Marks, mixed, by length.
    1000, 1000, 1000, 1452, 1900, 2269, 1793, 2255,
    // Marks, all the same, by length.
    1000, 1000, 1209, 1307, 1449, 1681, 1316, 1578,
    // Marks after a space, mixed, by length.
    1000, 1000, 1000, 1796, 2195, 2136, 2138, 3037,
    // Marks after a space, all the same, by length.
    1000, 1000, 1000, 1522, 1773, 1685, 1731, 1783,
    // Marks beyond the eighth: one that differs from the mark before it, one that equals it.
    950, 16,
    // Marks that end a run, by byte.
    100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100,
    100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100,
    100, 0, 0, 0, 0, 174, 0, 0, 0, 0, 91, 190, 0, 351, 0, 0,
    100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 0, 0, 1000, 0, 0, 0,
    0, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100,
    100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 899, 186, 491, 67, 243,
    269, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100,
    100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 0, 0, 55, 619, 100,
    // Line feeds after marks.
    0,
    // White space that ends with a line feed, by length; each line feed beyond the fourth.
    1320, 1000, 1235, 1937, 62,
    // White space within a line, by length; each space beyond the twelfth.
    1000, 1000, 1000, 1019, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 8,
    // Control characters.
    1000,
    // Greek: a run, a character, a character that equals the one before it. The same for each
    // script below.
    20, 257, 439,
    // Cyrillic.
    20, 206, 20,
    // Hebrew.
    20, 322, 539,
    // Arabic.
    20, 199, 492,
    // Other scripts of two bytes.
    278, 148, 536,
    // Other scripts of India and South-East Asia.
    38, 297, 80,
    // Georgian, Khmer, Vietnamese.
    20, 258, 215,
    // General punctuation.
    308, 506, 924,
    // Box drawing.
    20, 709, 59,
    // Arrows, mathematics.
    361, 547, 305,
    // Kana, CJK punctuation.
    471, 509, 400,
    // Han.
    55, 688, 688,
    // Hangul.
    20, 405, 376,
    // Full width, replacement character.
    757, 929, 309,
    // Emoji.
    509, 711, 711,
    // Devanagari.
    20, 169, 408,
    // Thai.
    20, 384, 973,
];
