DROP TRIGGER changed ON broker_promisedslot;
DROP FUNCTION note_slot_promised();
