//! Footprints against the engine: two commands whose footprints do not conflict can change places.

#[path = "commutation/world.rs"]
mod world;

#[path = "commutation/pairs.rs"]
mod pairs;

#[path = "commutation/mutants.rs"]
mod mutants;
