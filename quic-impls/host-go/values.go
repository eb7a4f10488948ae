package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Values are a JSON object of an assignment. Errors name the key and what would be right.
type Values struct {
	key string // of the object itself
	of  map[string]json.RawMessage
}

// mostBytes is the largest transfer.
const mostBytes = 1 << 40

// OptionsOf reads a JSON object as it would stand in an assignment.
func OptionsOf(text []byte) (Values, error) {
	v := Values{key: "options"}
	if err := json.Unmarshal(text, &v.of); err != nil {
		return v, fmt.Errorf("options: no JSON object: %w", err)
	}
	return v, nil
}

// Decode reads a value that has to be there.
func (v Values) Decode(name string, into any) error {
	if value := v.of[name]; value != nil && string(value) != "null" {
		return json.Unmarshal(value, into)
	}
	return errors.New("missing")
}

// Raw is the text of a value, which may be missing.
func (v Values) Raw(name string) json.RawMessage { return v.of[name] }

// Not refuses a value, and names the right one.
func (v Values) Not(name, right string) error {
	text := string(v.of[name])
	if v.of[name] == nil {
		text = "nothing"
	}
	return fmt.Errorf("%s.%s: %s is not %s", v.key, name, text, right)
}

// Choice reads one of some strings.
func (v Values) Choice(name string, into *string, choices ...string) error {
	if err := v.Decode(name, into); err != nil {
		return v.Not(name, "one of "+strings.Join(choices, ", "))
	}
	return oneOf(v.key+"."+name, *into, choices...)
}

// Number reads a number from a range.
func (v Values) Number(name string, into *float64, minimum, maximum float64) error {
	if err := v.Decode(name, into); err != nil || *into < minimum || *into > maximum {
		return v.Not(name, fmt.Sprintf("a number in %v to %v", minimum, maximum))
	}
	return nil
}

// Integer reads a whole number from a range.
func Integer[I int | int64](v Values, name string, into *I, minimum, maximum I) error {
	if err := v.Decode(name, into); err != nil || *into < minimum || *into > maximum {
		return v.Not(name, fmt.Sprintf("an integer in %d to %d", minimum, maximum))
	}
	return nil
}

// Only refuses keys that are not known.
func (v Values) Only(known ...string) error {
	for _, name := range slices.Sorted(maps.Keys(v.of)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%s.%s: unknown; known are %s", v.key, name, strings.Join(known, ", "))
		}
	}
	return nil
}

// Transfer reads the size of a download or an upload, which has nothing else.
func (v Values) Transfer(size *int64) error {
	if err := Integer(v, "size_bytes", size, 0, mostBytes); err != nil {
		return err
	}
	return v.Only("name", "size_bytes")
}

func oneOf(key, value string, choices ...string) error {
	if !slices.Contains(choices, value) {
		return fmt.Errorf("%s: %q is not one of %s", key, value, strings.Join(choices, ", "))
	}
	return nil
}
