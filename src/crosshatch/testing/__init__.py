"""What tests of algorithms, here and elsewhere, can build on."""
