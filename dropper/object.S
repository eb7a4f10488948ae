/* The BPF object file, as bytes of the command. */
    .section .rodata
    .balign 8
    .global dropper_object
    .global dropper_object_end
dropper_object:
    .incbin "build/dropper.bpf.o"
dropper_object_end:
    .section .note.GNU-stack, "", %progbits
