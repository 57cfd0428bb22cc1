"""One file or folder per protocol: decode, call the engine, encode. No policy, no SQL."""
