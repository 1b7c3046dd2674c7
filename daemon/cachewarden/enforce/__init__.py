"""One pass: measure, plan, evict, record. The only room in which a plan is carried out."""
