/* The BPF object file, as bytes of the command. */
    .section .rodata
    .balign 8
    .global clock_object
    .global clock_object_end
clock_object:
    .incbin "build/clock.bpf.o"
clock_object_end:
    .section .note.GNU-stack, "", %progbits
