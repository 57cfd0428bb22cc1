"""How many credentials of each family redaction catches, from the forms that services make public."""
