package broker

// Keys are the keys of broker.conf that [Config.Set] knows, sorted.
func Keys() []string {
	var keys []string
	for _, s := range settings() {
		keys = append(keys, s.key)
	}
	return keys
}
