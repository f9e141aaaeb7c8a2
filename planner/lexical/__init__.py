"""Terms: how texts become them, how they are packed, where they name titles. Pure."""
