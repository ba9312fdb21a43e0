package sparql

import "context"

// CountOutside counts what is outside of a part, of the graphs whose names begin with
// within: others write into the stores of the tests.
func (c *Client) CountOutside(ctx context.Context, p Part, product, within string) (Remainder, error) {
	return c.countGraphs(ctx, outside(p, product)+"FILTER(STRSTARTS(STR(?g), "+EscapeString(within)+")) ")
}
