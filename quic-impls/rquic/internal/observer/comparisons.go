package observer

// comparisons find out which recoveries were late. They are paid with the bytes that arrive, so that no peer gets many
// of them for little; comparisons that are not paid are not made.
type comparisons struct {
	spent int64 // and not paid yet
	made  int64
}

const (
	// paidByByte is for how many comparisons a received byte pays. An honest packet has a range of a stream or two, and so has each
	// packet that was rebuilt of late: the longest packets pay for thousands of them, the shortest for hundreds.
	paidByByte = 32
	// credit is the number of comparisons that may be made in advance.
	credit = 1 << 18
)

func (c *comparisons) pay(bytes int) { c.spent = max(0, c.spent-paidByByte*int64(bytes)) }

// affords reports whether so many are paid, which are made then.
func (c *comparisons) affords(n int) bool {
	if c.spent+int64(n) > credit {
		return false
	}
	c.spent += int64(n)
	c.made += int64(n)
	return true
}
