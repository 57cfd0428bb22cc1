"""What travels: records, requests, schemas, ids and faults. Imports nothing else of ours."""
